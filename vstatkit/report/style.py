"""Style sheet of a report, for screen and paper."""

STYLE = """\
:root { --ink: #1b1f24; --soft: #4d5560; --line: #c9ced6; --shade: #f4f6f8; }
* { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.5rem 0; }
h2 {
  font-size: 1.2rem; margin: 2rem 0 0.5rem; padding-bottom: 0.25rem;
  border-bottom: 1px solid var(--line);
}
p, li { max-width: 44rem; }
ul, ol { padding-left: 1.5rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid #005a9c; outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.25rem; }
th, td { padding: 0.3rem 0.75rem 0.3rem 0; text-align: right; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
thead th { overflow-wrap: normal; }
tbody th { font-weight: 400; }
tbody tr { border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; min-width: 7rem; max-width: 20rem; }
td { white-space: nowrap; }
.pairs :is(th, td) { text-align: left; white-space: normal; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; width: 34rem; }
figcaption, footer { color: var(--soft); font-size: 0.9rem; }
footer { margin-top: 2rem; border-top: 1px solid var(--line); }
@page { margin: 18mm; }
@media print {
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding-right: 0.4rem; }
  th:first-child { min-width: 0; }
  tr, figure, li { break-inside: avoid; }
  img { width: 12cm; }
}
"""
