"""The paper's question, by the kernel Stein discrepancy alone: does Q fit better than P?"""

from functools import partial

import lksd

compare = partial(lksd.compare, criterion="ksd", alternative="greater")
rank = partial(lksd.rank, criterion="ksd")
