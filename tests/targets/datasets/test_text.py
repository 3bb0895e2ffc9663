"""Plain text to bags of words: parsing, errors that name file and line, corpora on disk that are whole or not there."""

import io
import json
import re
import tarfile

import numpy as np
import pytest

from sgmcmc_verification.targets.datasets import newsgroups, wikipedia
from sgmcmc_verification.targets.datasets.corpus import (
    HEADER,
    TOKENS,
    completion_split,
    from_documents,
    load_corpus,
    write_corpus,
)
from sgmcmc_verification.targets.datasets.documents import read_archive, read_folder, read_json_lines
from sgmcmc_verification.targets.datasets.files import DataError, available, locate
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary, build_vocabulary, parse_vocabulary, words

WORDS = Vocabulary(("cat", "dog", "sat", "the"))
DOCUMENTS = [np.array([3, 0, 2]), np.array([], int), np.array([3, 1, 2, 2, 0])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The CAT\nsat", ["the", "cat", "sat"]),
        ("well-known\tcats' 99 lives!", ["well", "known", "cats", "lives"]),
        ("caf\u00e9 na\u00efve", ["caf", "nave"]),
        ("  \n-- ", []),
    ],
)
def test_words_of_a_text(text, expected):
    assert words(text) == expected


def test_words_out_of_the_vocabulary_are_left_out_and_order_is_kept():
    np.testing.assert_array_equal(WORDS.encode("The black cat sat; the dog sat."), [3, 0, 2, 3, 1, 2])


def test_a_vocabulary_is_parsed_in_lower_case():
    assert parse_vocabulary(b"None\ncat\n", "toy").words == ("none", "cat")


@pytest.mark.parametrize(("line", "words"), [("two words", "line 2"), ("", "line 2"), ("CAT", "line 2 repeats 'cat'")])
def test_a_malformed_vocabulary_is_named_with_file_and_line(line, words):
    with pytest.raises(DataError, match=f"toy.vocab: {words}"):
        parse_vocabulary(f"cat\n{line}\ndog\n".encode(), "toy.vocab")


def test_a_built_vocabulary_has_the_frequent_words_without_the_ubiquitous_and_rare_ones():
    texts = ["apple banana banana cherry once", "apple banana date date", "apple cherry date it", "apple is it"]
    built = build_vocabulary(texts, 2, largest_share=0.75)
    assert built.words == ("banana", "date")  # apple is in every text, once in one, it and is have two letters
    assert build_vocabulary(texts, 9, largest_share=0.75).words == ("banana", "cherry", "date")
    with pytest.raises(DataError, match="no word of 4 documents is left"):
        build_vocabulary(texts, 9, least=5)
    with pytest.raises(ValueError, match="size: must be at least 1"):
        build_vocabulary(texts, 0)


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.txt").write_text("dog")
    (tmp_path / "a.txt").write_text("cat")
    (tmp_path / "ignored.md").write_text("none")
    assert [text for _, text in read_folder(tmp_path)] == ["cat", "dog"]
    with pytest.raises(DataError, match=r"no file \*\.rst"):
        list(read_folder(tmp_path, ".rst"))


def test_bytes_of_another_encoding_are_named_with_file_and_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\nalso fine\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt: line 3 is not utf-8"):
        list(read_folder(tmp_path))
    assert next(read_folder(tmp_path, encoding="latin-1"))[1].endswith("caf\u00e9\n")


@pytest.mark.parametrize(
    "line",
    ['{"text": "cut', '{"body": "x"}', '["text"]', "", '{"text": 3}'],
    ids=["cut off", "no such field", "no object", "empty", "no string"],
)
def test_a_malformed_json_line_is_named_with_file_and_line(tmp_path, line):
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps({"text": "the cat"}) + "\n" + line + "\n")
    reader = read_json_lines(path)
    assert next(reader)[1] == "the cat"
    with pytest.raises(DataError, match=r"docs\.jsonl: line 2"):
        next(reader)


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_an_archive_is_read_in_one_pass_and_a_truncated_one_is_named(tmp_path):
    path = tmp_path / "docs.tar.gz"
    rng = np.random.default_rng(0)
    archive(path, {f"part/{i}": rng.bytes(5000).hex().encode() for i in range(5)} | {"other/x": b"no"})
    assert [name for name, _ in read_archive(path, "part/")] == [f"part/{i}" for i in range(5)]
    path.write_bytes(path.read_bytes()[:-9000])
    with pytest.raises(DataError, match=rf"{re.escape(str(path))}: cannot be read after part/\d"):
        list(read_archive(path, "part/"))
    path.write_bytes(b"not an archive")
    with pytest.raises(DataError, match="truncated, or no tar archive"):
        list(read_archive(path))


def test_a_corpus_comes_back_from_its_files_mapped_and_equal(tmp_path):
    written = write_corpus(DOCUMENTS, WORDS, tmp_path / "toy")
    assert isinstance(written.tokens, np.memmap)
    assert len(written) == 3
    for number, document in enumerate(DOCUMENTS):
        np.testing.assert_array_equal(written.document(number), document)
    assert written.vocabulary.words == WORDS.words
    taken = written.take([2, 0])
    np.testing.assert_array_equal(taken.tokens, [3, 1, 2, 2, 0, 3, 0, 2])
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]
    with pytest.raises(ValueError, match="exists"):
        write_corpus(DOCUMENTS, WORDS, tmp_path / "toy")


def test_an_error_while_a_corpus_is_written_leaves_nothing_behind(tmp_path):
    def failing():
        yield DOCUMENTS[0]
        raise DataError("docs.jsonl: line 2 is bad")

    with pytest.raises(DataError, match="line 2"):
        write_corpus(failing(), WORDS, tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [TOKENS, "offsets.npy", "vocabulary.txt", HEADER])
@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_a_damaged_corpus_is_refused_by_name(tmp_path, name, damage):
    write_corpus(DOCUMENTS, WORDS, tmp_path / "toy")
    path = tmp_path / "toy" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-5])
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "toy")) + ".*(make it again|line)"):
        load_corpus(tmp_path / "toy")


def test_a_word_out_of_range_is_named_with_its_document():
    corpus = from_documents([np.array([0, 1]), np.array([3, 9, 0])], WORDS)
    with pytest.raises(DataError, match="toy: word 1 of document 1 is 9, the vocabulary has 4 words"):
        corpus.checked("toy")


def test_completion_split_predicts_every_tenth_word_of_each_document():
    corpus = from_documents([np.arange(12) % 4, np.array([2]), np.array([], int), np.arange(10) % 4], WORDS)
    seen, predicted = completion_split(corpus)
    assert predicted.lengths.tolist() == [2, 1, 0, 1]
    assert seen.lengths.tolist() == [10, 0, 0, 9]
    np.testing.assert_array_equal(predicted.document(0), [0, 2])
    np.testing.assert_array_equal(seen.document(0), [1, 2, 3, 0, 1, 2, 3, 0, 1, 3])


ARTICLE = '<doc id="7" url="u" title="T">\nT\n\nThe cat &amp; the dog\n</doc>\n'


def test_articles_lose_their_title_and_keep_their_text():
    assert list(wikipedia.parse_articles([("f", ARTICLE * 2)])) == [("7", "\nThe cat & the dog")] * 2


@pytest.mark.parametrize(
    ("text", "line"),
    [(ARTICLE + "stray\n", 6), (ARTICLE.replace("</doc>\n", "") + ARTICLE, 5), (ARTICLE[:-8], 4)],
    ids=["outside", "not ended", "truncated"],
)
def test_a_malformed_article_is_named_with_file_and_line(text, line):
    with pytest.raises(DataError, match=f"wiki_03: line {line} "):
        list(wikipedia.parse_articles([("wiki_03", text)]))


TABLE = "curid\tn_words\tn_vocab_tokens\ttitle\n1\t5\t3\tA\n2\t9\t2\tB\n"


def test_words_of_articles_are_cut_by_the_table():
    counts = wikipedia.parse_counts(TABLE.encode(), "docs.tsv")
    corpus = wikipedia.assemble(np.array([0, 1, 2, 3, 3], "<u2").tobytes(), counts, WORDS, "tokens")
    np.testing.assert_array_equal(corpus.document(1), [3, 3])
    with pytest.raises(DataError, match="tokens: 8 bytes, the table of articles asks for 10"):
        wikipedia.assemble(np.zeros(4, "<u2").tobytes(), counts, WORDS, "tokens")
    with pytest.raises(DataError, match="tokens: word 0 of document 0 is 4"):
        wikipedia.assemble(np.full(5, 4, "<u2").tobytes(), counts, WORDS, "tokens")


@pytest.mark.parametrize(
    ("change", "line"),
    [(("1\t5\t3\tA", "1\t5\tA"), 2), (("2\t9\t2", "2\t9\t10"), 3), (("curid", "id"), 1), (("\t2\tB", "\tx\tB"), 3)],
)
def test_a_malformed_table_of_articles_is_named_with_file_and_line(change, line):
    with pytest.raises(DataError, match=rf"docs\.tsv: line {line} "):
        wikipedia.parse_counts(TABLE.replace(*change).encode(), "docs.tsv")


def test_posts_lose_their_header():
    assert newsgroups.body("From: a\nSubject: b\n\nText\n\nmore") == "Text\n\nmore"
    assert newsgroups.body("no header") == "no header"
    with pytest.raises(ValueError, match="part: must be"):
        next(newsgroups.read_posts("both"))


@pytest.mark.skipif(not available(*wikipedia.FILES), reason="needs wikipedia/ in SGMCMC_DATA_DIR")
def test_wikipedia_has_the_published_counts_and_its_tokens_are_those_of_the_text():
    corpus = wikipedia.load_wikipedia()
    assert (len(corpus), len(corpus.tokens), len(corpus.vocabulary)) == (261_409, 20_555_418, 7702)
    if available(wikipedia.TEXT):
        path = locate(wikipedia.TEXT)
        assert path is not None
        articles = wikipedia.parse_articles(read_archive(path))
        for number, (_, text) in zip(range(500), articles, strict=False):
            np.testing.assert_array_equal(corpus.vocabulary.encode(text), corpus.document(number))
