"""Formulas that a stranger might send: right-hand sides, all to be refused.

Run as a program it reads each as a formula of a stranger, and prints what happened.
"""

import json
import resource
import sys
import time
import warnings

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.formula.parse import parse

ROWS = 60

NUMBERS = [
    "I(9**9**9)",
    "x + I(9**9**9)",
    "I(x * 9**9**9)",
    "I(x + 10**10**10)",
    "I(2**(2**40))",
    "I(1 << 10**10)",
    "I(x * (1 << 40))",
    "I(1 << (1 << 40))",
    "I(10**6 * 10**6 * 10**6 * 10**6)",
    "I((10**18)**4)",
    "I(x > 7**7**7)",
    "log(x + 9**9**9)",
    "np.power(9**9**9, x)",
    "C(x, levels=[9**9**9])",
    "bs(x, df=5, lower_bound=-9**9**9)",
    "I(-(9**9**9))",
    "I(I(9)**I(9**9))",
    "I((1 < 2) << 10**10)",
    "I(x if x else 9**9**9)",
    "I(True << 10**10)",
    "I((x is x) << 10**10)",
    "I((x and 5) << 10**10)",
    "I((not 0) << 10**10)",
    "I(~0 << 10**10)",
    "I(10**65)",
    "I(2 ** -9**9**9)",
    "I(" + "9" * 4000 + ")",
    "I(" + "9" * 5000 + ")",
    "I(0x" + "f" * 100 + ")",
    "I(1 / 0)",
    "I((-8) ** 0.5)",
    "I(1e308 * 10 ** 400)",
    "I(5j * x)",
    "9**9**9",
    "x ** 9 ** 9.5",
    "x ** 9.5",
    "5",
    "x + 7",
    "x ** -1",
    "x ** 0",
    "round(x, -2**31)",
    "round(x, 10**9)",
    "np.round(x, 10**7)",
]

TEXT = [
    "I('a' * 10**9)",
    "I(x + 'a' * 10**9)",
    "I(10**9 * 'a')",
    "I([0] * 10**9)",
    "I((1, 2) * 10**9)",
    "I('%1000000000d' % 5)",
    "I(g * 10**9)",
    "I(I(g) * 10**9)",
    "I(Q('g') * 10**9)",
    "np.multiply(g, 10**9)",
    "multiply(g, 10**9)",
    "I(where(x > 0, g, g) * 10**9)",
    "I(where(x > 0, 'a', 'b') * 10**9)",
    "add(g, g)",
    "I(g + g + g)",
    "add([[1], [2], [3]], x)",
    "C(g, levels=['a' * 10**9])",
    "I(b'a' * 10**9)",
    "I(f'{x}' * 10**9)",
    "I(... )",
]

COLUMNS = [
    "bs(x, df=10**7)",
    "bs(x, 10**7)",
    "bs(x, df=1000000)",
    "bs(x, df=5, degree=10**6)",
    "bs(x, knots=[" + "0.5, " * 200 + "0.5])",
    "bs(x, df=1e7)",
    "bs(x, df=z)",
    "cr(x, df=10**6)",
    "cc(x, df=10**6)",
    "te(cr(x, df=90), cr(z, df=90))",
    "te(cr(x, df=60), cr(z, df=60), cr(w, df=60))",
    "poly(x, 10**8, raw=True)",
    "poly(x, 10**8)",
    "poly(x, degree=10**9)",
    "poly(x, degree=101, raw=True)",
    "poly(x, 9**9**9)",
    "poly(x, z)",
    "poly(x, True)",
    "bs(x, df=90):bs(z, df=90)",
    "poly(x, 50):poly(z, 50):poly(w, 50)",
    "C(x):C(z):C(w)",
    "C(x):C(z) + C(x):C(w)",
    "C(x, Poly):C(z, Poly) + C(z, Poly):C(w, Poly)",
    "(" + " + ".join(f"C(x, Treatment({j}))" for j in range(100)) + "):C(z)",
    "*".join(f"C(g, Treatment({level!r}))" for level in "abcdef") + "*C(x)",
    "*".join(f"I(x**{j})" for j in range(1, 21)),
    "(" + " + ".join(f"I(x**{j})" for j in range(1, 31)) + ")**20",
    "(" + " + ".join(f"I(x**{j})" for j in range(1, 31)) + ")**99999999",
    "(" + " + ".join(f"I(x**{j})" for j in range(1, 101)) + ")**2:C(x)",
    "/".join(f"(I(x**{j}) + C(z))" for j in range(1, 21)) + ":C(x)",
    ":".join(f"(I(x**{j}) + I(z**{j}))" for j in range(1, 21)),
    "I(C(x))**2:C(x):C(z)",
    "C(many)",
    "many",
    "C(many + x)",
]

SHAPE = [
    "(" * 1000 + "x" + ")" * 1000,
    "(" * 100_000 + "x" + ")" * 100_000,
    "I(" + "(" * 150 + "x" + ")" * 150 + ")",
    "I(" + "-" * 4000 + "x)",
    "I(" + "~" * 900 + "x)",
    "I(" + "+".join(["x"] * 2000) + ")",
    "I(" + "**".join(["x"] * 500) + ")",
    "log(" * 45 + "x" + ")" * 45,
    "center(" * 300 + "x" + ")" * 300,
    "I(" + "x" * 2_000_000 + ")",
    " + ".join(["x"] * 40_000),
    "I(" + "x + " * 20_000 + "x)",
    " + ".join(f"I(x + {j} + {j} + {j} + {j})" for j in range(2000)),
    "I([[[[[" * 100 + "1" + "]]]]]" * 100 + ")",
    "x ~ z ~ w",
    "x + (z ~ w)",
    "-x",
    "x:1",
    "(x + 1):z",
    "x +",
    "x + )",
    "x + (",
    "I(x",
    "'",
    '"' * 7,
    "I(x\\\nz)",
    "x + \0",
    "I(\0)",
    "\ud800",
]

CODE = [
    "__import__('os').system('touch executed')",
    "I(__import__('os').system('touch executed'))",
    "open('executed', 'w')",
    "I(open('executed', 'w').write('x'))",
    'exec(\'open("executed", "w")\')',
    "eval('x')",
    "I(eval('9**9**9'))",
    "np.load('executed')",
    "np.save('executed', x)",
    "np.lib.format.open_memmap('executed', 'w+')",
    "np.fromfile('executed')",
    "np.ones(10**10)",
    "np.arange(10**10)",
    "np.tile(x, 10**9)",
    "x.tofile('executed')",
    "x.__class__",
    "x.__class__.__mro__",
    "().__class__.__bases__[0].__subclasses__()",
    "getattr(x, 'sum')()",
    "x.sum()",
    "x[0]",
    "x[:10]",
    "I((lambda: 1)())",
    "I([z for z in x])",
    "I({z: 1 for z in x})",
    "I({**x})",
    "I(x := 5)",
    "I((yield))",
    "I(await x)",
    "log(*x)",
    "log(**x)",
    "log(x, out=x)",
    "log(x, x)",
    "add(x, z, x)",
    "np.add(x, z, x)",
    "log(x, dtype='O')",
    "log(x, where=x > 0)",
    "clip(x, 0, 1, x)",
    "round(x, 2, x)",
    "matmul(x, x)",
    "np.add.at(x, [0], 5)",
    "np.add.outer(x, x)",
    "np.add.reduce(x)",
    "np.vectorize(x)",
    "np",
    "log",
    "I(log)",
    "C",
    "Q(x)",
    "Q(g)",
    "Q('x' + 'y')",
    "Q('x' * 10**9)",
    "Q(9**9**9)",
    "Q(['x'])",
    "Q('x', 'y')",
    "Q(name='x')",
    "Q('absent')",
    "Q()",
    "I()",
    "C()",
    "log()",
    "absent",
    "absent(x)",
    "C(x, z)",
    "C(x, Treatment(x))",
    "C(x, np)",
    "Treatment",
    "Treatment('a')",
    "ContrastMatrix([[1]], ['a'])",
    "I(x == [1])",
    "I(x in x)",
    "I(x @ x)",
    "print(x)",
    "input()",
    "globals()",
    "breakpoint()",
    "exit()",
    "vars(x)",
    "type(x)",
]

FORMULAS = [f"y ~ {right}" for right in NUMBERS + TEXT + COLUMNS + SHAPE + CODE]
FORMULAS += [
    "",
    "~",
    "y ~",
    "~ x",
    "y",
    "I(9**9**9) ~ x",
    "I(y * 9**9**9) ~ x",
    "bs(y, df=10**7) ~ x",
    "y + x ~ z",
    "open('executed', 'w') ~ x",
]


def data():
    rng = np.random.default_rng(1)
    columns = {name: rng.uniform(1, 2, ROWS) for name in "yxzw"}
    text = {"g": list("abcdef") * (ROWS // 6)}
    levels = pd.Categorical(["a"] * ROWS, [*map(str, range(3000)), "a"])
    return pd.DataFrame({**columns, **text}).assign(many=levels)


def outcome(formula, frame):
    before = time.process_time()
    try:
        parse(formula, frame, environment=None, intercept=False)
        found = "accepted"
    except vs.FormulaError as error:
        found = "refused" if str(error).strip() else "without a word"
    except BaseException as error:
        found = f"{type(error).__name__}: {error}"[:200]
    return found, time.process_time() - before


def main():
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    warnings.simplefilter("ignore")
    frame = data()
    ordinary = "y ~ x + C(g) + bs(z, df=5) + poly(w, 2) + te(cr(x, df=4), cc(z, df=4))"
    parse(ordinary, frame, environment=None, intercept=False)
    copy, touched = frame.copy(), []
    watched = ("open", "os.", "subprocess.", "socket.", "import", "shutil.", "ctypes.")
    sys.addaudithook(
        lambda event, args: (
            touched.append([event, str(args)[:200]])
            if event.startswith(watched)
            else None
        )
    )
    rows = []
    for formula in FORMULAS:
        touched.clear()
        found, seconds = outcome(formula, frame)
        rows.append([formula[:80], found, seconds, list(touched)])
    print(json.dumps({"rows": rows, "same": bool(frame.equals(copy))}))


if __name__ == "__main__":
    main()
