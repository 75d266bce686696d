# Python's messages in R syntax, and suggestions for misspelled names.

# Rows count from 1; where a formula is quoted with a mark below, it is Python's.
in_r_words <- function(text) {
  text <- sub("\n    .*\n *\\^+ *$", "", text)
  text <- rows_from_one(text)
  text <- conversions_of_r(text)
  text <- gsub("\\b(has|got) (-?)inf\\b", "\\1 \\2Inf", text)
  text <- gsub("\\b(has|got) nan\\b", "\\1 NA", text)
  for (word in names(R_WORDS)) text <- gsub(word, R_WORDS[[word]], text, perl = TRUE)
  options_of_r(text)
}

# "R's `C(...)`" is R's own function; elsewhere C() makes a factor.
R_WORDS <- c(
  "(?<!R's `)\\bC\\(" = "factor(",
  "\\bQ\\([\"']([^\"']*)[\"']\\)" = "`\\1`",
  "`res\\.(\\w+)\\(" = "`fit$results$\\1(",
  "data\\.query\\(\\.\\.\\.\\)" = "data[rows, ]",
  "data\\.dropna\\(subset=\\['([^']*)'\\]\\)" = "data[!is.na(data[[\"\\1\"]]), ]",
  "a DataFrame, a dict of columns, a polars frame or an Arrow table" = "a data frame",
  "\\bgot (str|dict)\\b" = "got text",
  "\\bgot (int|float)\\b" = "got a number"
)

# Numbers in messages are written as in code, whatever options(OutDec = ) is.
number_text <- function(x) {
  if (is.numeric(x)) x <- format(x, decimal.mark = ".", trim = TRUE)
  paste(format(x), collapse = " ")
}

count_text <- function(x) format(x, big.mark = ",", decimal.mark = ".")

# `name='value'` and `name=True` as arguments are written in R.
options_of_r <- function(text) {
  text <- gsub("\\b(\\w+)='([^'\n]*)'", "\\1 = \"\\2\"", text)
  text <- gsub("\\b([A-Za-z_]\\w*)=(True|False|None|[0-9.]+\\b)", "\\1 = \\2", text)
  for (word in c("True", "False")) {
    text <- gsub(paste0("\\b", word, "\\b"), toupper(word), text)
  }
  gsub("\\bNone\\b", "NULL", text)
}

rows_from_one <- function(text) {
  found <- gregexpr("\\brow [0-9]+\\b", text)
  regmatches(text, found) <- lapply(regmatches(text, found), function(rows) {
    places <- as.numeric(sub("row ", "", rows)) + 1
    sprintf("row %s", format(places, scientific = FALSE, trim = TRUE))
  })
  text
}

# Replace Python code that converts a column by R code.
conversions_of_r <- function(text) {
  name <- sub("^column '([^']*)' .*$", "\\1", text)
  line <- regmatches(text, regexpr("(Convert it|such as days): .*; or write", text))
  if (!length(line)) return(text)
  head <- sub(": .*$", "", line)
  column <- paste0("data$", as_text(as.name(name)))
  with <- if (head == "such as days") "as.numeric(as.Date(%s))"
    else if (grepl("replace(',', '.')", line, fixed = TRUE))
      "as.numeric(sub(\",\", \".\", %s, fixed = TRUE))"
    else if (grepl("replace(',', '')", line, fixed = TRUE))
      "as.numeric(gsub(\",\", \"\", %s))"
    else "as.numeric(%s)"
  said <- paste0(head, ": ", column, " <- ", sprintf(with, column), "; or write")
  sub(line, said, text, fixed = TRUE)
}

# --- misspelled names

nearest_name <- function(name, known) {
  if (!length(known)) return(NULL)
  far <- utils::adist(name, known, ignore.case = TRUE)
  if (min(far) <= max(1, nchar(name) %/% 3)) known[which.min(far)]
}

# Generic functions accept any argument; methods reject unknown ones.
refuse_others <- function(given, known, of) {
  if (!length(given)) return(invisible())
  names <- names(given)
  if (is.null(names) || any(names == "")) {
    fail(paste0(of, "() takes no further arguments without a name."), "TypeError")
  }
  strange <- setdiff(names, known)
  if (!length(strange)) return(invisible())
  name <- strange[1]
  meant <- if (name == "alpha") grep("level", known, value = TRUE)
    else nearest_name(name, known)
  advice <- if (length(meant)) paste0("; did you mean `", meant[1], "`?")
    else if (length(known)) paste0("; it has ", in_backticks(known), ".")
    else "; it takes only the fit."
  fail(paste0(of, "() has no argument `", name, "`", advice), "TypeError")
}

# modelsummary and gtsummary pass their own arguments, which are not mistakes.
refuse_mistyped <- function(names, known, of) {
  for (name in setdiff(names, known)) {
    if (name == "alpha" || length(nearest_name(name, known))) {
      refuse_others(stats::setNames(list(0), name), known, of)
    }
  }
}

in_backticks <- function(names) paste0("`", names, "`", collapse = ", ")

# The first of many names, in quotes.
some_of <- function(names) {
  paste0(paste0("'", utils::head(names, 10), "'", collapse = ", "),
         if (length(names) > 10) ", ...")
}
