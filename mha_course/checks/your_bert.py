"""The tasks of lesson 12: embeddings, encoder, loading, and what is made of the hidden states."""

from mha_course import bert, sentences
from mha_course.checks.mistakes.nearest_means import NEAREST, build_nearest
from mha_course.checks.mistakes.searching import SEARCH, build_search
from mha_course.checks.mistakes.strict_loading import STRICT, build_strict
from mha_course.checks.mistakes.text_means import MEAN, build_mean
from mha_course.checks.mistakes.your_embeddings import EMBEDDINGS, build_embeddings
from mha_course.checks.mistakes.your_encoder import ENCODER, build_encoder
from mha_course.checks.strict_loading import examine_loading, loading_cases, run_loading
from mha_course.checks.task import Task
from mha_course.checks.text_vectors import (
    classify_cases,
    examine_classify,
    examine_search,
    mean_cases,
    mean_stages,
    run_classify,
    search_cases,
    search_stages,
)
from mha_course.checks.your_embeddings import (
    embedding_cases,
    embedding_stages,
    examine_embeddings,
    run_embeddings,
)
from mha_course.checks.your_encoder import encoder_cases, examine_encoder, run_encoder

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1  # of the exercise set: counted up when a task's statement or signature changes
LENDS = ()  # an answer is given its config and its layer, and needs nothing of the course

TASKS = [
    Task(
        "12-BertEmbeddings",
        bert.BertEmbeddings,
        embedding_cases,
        run=run_embeddings,
        examine=examine_embeddings,
        returns=("the output",),
        kind="class",
        mistakes=EMBEDDINGS,
        build=build_embeddings,
        stages=embedding_stages,
        forbidden=("mha_course.bert.BertEmbeddings",),
    ),
    Task(
        "12-BertEncoder",
        build_encoder(),
        encoder_cases,
        run=run_encoder,
        examine=examine_encoder,
        returns=("hidden_states",),
        kind="class",
        mistakes=ENCODER,
        build=build_encoder,
        forbidden=("mha_course.bert.BertEncoder",),
    ),
    Task(
        "12-load_weights",
        build_strict(),
        loading_cases,
        run=run_loading,
        examine=examine_loading,
        mistakes=STRICT,
        build=build_strict,
    ),
    Task(
        "12-mean_pool",
        sentences.mean_pool,
        mean_cases,
        returns=("the mean",),
        mistakes=MEAN,
        build=build_mean,
        stages=mean_stages,
        forbidden=("mha_course.sentences.mean_pool",),
    ),
    Task(
        "12-search",
        sentences.search,
        search_cases,
        examine=examine_search,
        returns=("the number of pairs", "indices", "cosines"),
        mistakes=SEARCH,
        build=build_search,
        stages=search_stages,
        forbidden=("mha_course.sentences.search",),
    ),
    Task(
        "12-classify",
        sentences.classify,
        classify_cases,
        run=run_classify,
        examine=examine_classify,
        mistakes=NEAREST,
        build=build_nearest,
        forbidden=("mha_course.sentences.classify",),
    ),
]
