"""Statistical tests of i.i.d. samples, each with a derived tail and the smallest effect that it detects."""
