"""Words that end in a dot without ending a sentence, casefolded and without that dot."""

from typing import Final

# Never the end of a sentence: a name, number or phrase follows.
_NEVER_LAST = """
mr mrs ms dr prof st mt messrs rev hon gen col lt sgt capt cmdr adm gov sen rep pres supt
vs e.g i.e eg ie cf viz al ed eds op dept univ
approx ca est incl excl resp
hr fr frau herr bzw d.h z.b u.a v.a i.d.r s.o s.u bspw ggf evtl vgl sog ing dipl z.t
mme mlle mm m.e p.ex env av bd
sr sra srta dª d.ª ud uds pág págs núm
sig sigg dott
г ул им т.е т.к т.н см ср напр акад проф гр гос обл р-н св тов пр
"""

# Words too ("no", "art"): an abbreviation only before a number.
_BEFORE_NUMBERS = """
no nos nr art sec ch vol vols fig figs eq eqs p pp para tab str abs стр рис табл ст п
"""

# May end a sentence ("Apple Inc. The firm ..."): an end only before a typical first word.
_SOMETIMES_LAST = """
inc ltd corp co llc plc gmbh bros jr sr etc usw jan feb mar apr jun jul aug sep sept oct nov dec
a.m p.m u.s u.k u.n e.u ph.d m.d b.c a.d u.s.a d.c s.a s.p.a u.s.s.r
т.д т.п др гг вв н.э тыс млн млрд руб коп
"""

_STARTERS = """
The A An It He She They We You I This That These Those There Here In On At By For From With When
While After Before As If But And Or So Since Although However Its His Her Their Our
Der Die Das Ein Eine Er Sie Es Wir Im In Am Auf Mit Nach Vor Seit Als Wenn Diese Dieser Dieses
В На С По При Он Она Оно Они Это Эта Этот Эти Мы Вы Я Как Но И А После До Для
"""

ABBREVIATIONS: Final = frozenset(_NEVER_LAST.split())
NUMBER_ABBREVIATIONS: Final = frozenset(_BEFORE_NUMBERS.split())
OPEN_ABBREVIATIONS: Final = frozenset(_SOMETIMES_LAST.split())
SENTENCE_STARTERS: Final = frozenset(_STARTERS.split())
