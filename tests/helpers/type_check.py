"""The run-time check of annotations: beartype, for which an integer is a float, as it is for type checkers."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
