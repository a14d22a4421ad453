# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tutorial: a topic model
#
# How many topics? Likelihoods of held-out documents are hard to come by for topic models; the test
# needs only posterior draws of the topics of words. The documents are docstrings of NumPy and
# SciPy, which are at hand wherever this library is.
#
# ## Documents
#
# One document for each function: its first 60 words of three letters or more, without stop words.
# Texts that occur twice are taken once, since the test takes documents as independent.

# %%
import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from gensim.corpora import Dictionary
from gensim.models import LdaModel
from gensim.parsing.preprocessing import STOPWORDS

import lksd

MODULES = [
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
]
MODULES += [
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.special",
    "scipy.cluster.hierarchy",
]

texts = {}
for module in map(importlib.import_module, MODULES):
    for name in sorted(module.__all__):
        text = inspect.getdoc(getattr(module, name)) or ""
        words = [word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in STOPWORDS][
            :60
        ]
        if len(words) >= 40:
            texts[" ".join(words)] = words
documents = list(texts.values())
print(len(documents), documents[0][:8])

# %% [markdown]
# ## Train on one part
#
# The vocabulary comes from the training documents. A word that the models do not know has no
# probability, so it is left out of the test documents too: the comparison is about the words that
# are known.

# %%
order = np.random.default_rng(0).permutation(len(documents))
train = [documents[i] for i in order[len(order) // 3 :]]
held_out = [documents[i] for i in order[: len(order) // 3]]

dictionary = Dictionary(train)
dictionary.filter_extremes(no_below=5, no_above=0.3, keep_n=800)
dictionary.compactify()
corpus = [dictionary.doc2bow(words) for words in train]


def trained(topics):
    model = LdaModel(
        corpus, num_topics=topics, id2word=dictionary, passes=4, alpha="auto", random_state=0
    )
    return lksd.adapters.from_gensim(model)


two, six = trained(2), trained(6)

# %% [markdown]
# ## Test on the other
#
# Documents are lists of token ids, and may differ in length. For two topics the ratios of
# probabilities are exact (a dynamic program over topic counts); for six they come from collapsed
# Gibbs chains.

# %%
ids = [[i for i in dictionary.doc2idx(words) if i >= 0] for words in held_out]
test = [document for document in ids if len(document) >= 10][:100]
result = lksd.compare(test, two, six, draws=600)
print(result)

# %% [markdown]
# Two hypotheses were tested, one for each operator, and the p-values are corrected for that. They
# see different faults: `Difference` looks at ratios of probabilities, `Barker` at bounded weights.
# Here they disagree: each model has a fault that the other has not, and which matters more is not
# for a test to say. `result.tests` has the answer of each.
#
# ## Which documents and words decide
#
# Parts of documents sum to the difference, and so do parts of words. A positive part speaks for six
# topics.

# %%
for word, part in result.words.top(8):
    print(f"{part:+.1e}  {word}")

# %%
figure, axes = plt.subplots(figsize=(6, 3))
axes.bar(np.arange(len(test)), np.sort(result.contributions)[::-1], width=1.0)
axes.axhline(0, color="grey", linewidth=0.8)
axes.set_xlabel("documents, sorted")
axes.set_ylabel("adds to P - Q")
figure.tight_layout()

# %% [markdown]
# ## And more topics?
#
# Asking again with twenty topics is a second test on the same documents. Correct for it, for
# example by testing each at half the level, or keep fresh documents for it. What the answer does
# not say: that six topics are right, or that they mean something to a reader.
