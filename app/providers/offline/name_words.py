"""Word lists by which the rules of the offline extractor tell names from words and guess what a name stands for."""

from typing import Final

from app.text.concepts.words import normalise


def _set(words: str) -> frozenset[str]:
    return frozenset(normalise(word) for word in words.split())


CALENDAR: Final = _set(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug sep
    sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter
    januar februar märz april mai juni juli august september oktober november dezember montag dienstag mittwoch donnerstag
    freitag samstag sonntag sommer herbst frühling frühjahr uhr
    январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае июнь июня июне июль июля
    июле август августа августе сентябрь сентября сентябре октябрь октября октябре ноябрь ноября ноябре декабрь декабря
    декабре понедельник вторник среда четверг пятница суббота воскресенье
    janvier février mars avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio
    julio agosto septiembre octubre noviembre diciembre"""
)
DEMONYMS: Final = _set(
    """african albanian algerian american arab arabian arabic argentine armenian asian assyrian athenian australian austrian
    babylonian bavarian belgian bosnian brazilian british bulgarian burmese byzantine californian canadian carolingian
    caucasian chilean chinese christian colombian cornish croatian cuban cypriot czech danish dutch egyptian english estonian
    ethiopian european finnish flemish french gallic georgian german germanic greek hawaiian hebrew hungarian icelandic
    indian indonesian iranian iraqi irish islamic israeli italian japanese jewish jordanian kenyan korean latin latvian
    lebanese libyan lithuanian maori mexican mongol mongolian moroccan muslim nigerian norman norse norwegian ottoman
    pakistani palestinian persian peruvian philippine polish portuguese protestant catholic prussian roman romanian russian
    saxon scandinavian scottish serbian slavic slovak slovenian somali soviet spanish swedish swiss syrian taiwanese tatar
    thai tibetan tunisian turkish ukrainian venezuelan victorian vietnamese welsh western eastern northern southern
    lutheran confucian calvinist buddhist hindu communist democratic republican federal imperial royal national"""
)
# Words that are written with a capital beside names but name nothing alone.
COMMON_CAPITALS: Final = _set(
    """president king queen pope emperor prince princess duke earl lord lady sir mr mrs ms dr prof professor general captain
    colonel major saint st bishop archbishop minister chancellor senator governor mayor judge chairman director university
    college school church state city county river lake north south east west northeast northwest southeast southwest century
    chapter section part figure table article act law bill court parliament congress senate government republic empire
    kingdom union party committee council army navy internet god bible web act ii iii iv vi vii viii ix xi xii inc ltd co corp
    jr sr vol no pp ibid phd ad bc ce bce am pm ok tv
    herr frau könig königin kaiser papst präsident bundestag staat stadt land universität kirche regierung gesetz artikel
    король королева император президент папа господин госпожа университет республика империя королевство церковь суд
    правительство парламент закон конституция бог церкви"""
)
PERSON_TITLES: Final = _set(
    """president king queen pope emperor empress prince princess duke duchess earl count lord lady sir mr mrs ms miss dr prof
    professor general captain colonel major saint bishop archbishop cardinal minister chancellor senator governor mayor judge
    sheikh sultan caliph khan tsar czar rabbi reverend
    herr frau könig königin kaiser kaiserin papst präsident präsidentin bundeskanzler bundeskanzlerin kanzler doktor graf
    herzog fürst prinz general bischof erzbischof minister professor
    король королева император императрица президент папа господин госпожа доктор профессор генерал князь княгиня царь царица
    граф герцог епископ архиепископ министр канцлер хан султан принц"""
)
_HEADS: Final[dict[str, str]] = {
    "organization": """university universities college school institute academy company corporation corp inc ltd llc gmbh ag
        plc group party church council committee commission association society foundation bank court parliament congress
        senate ministry department agency bureau office army navy guard police team club league union federation
        organization organisation museum laboratory lab press times post news network media studios records hospital
        government assembly alliance order orchestra airlines motors systems technologies
        universität hochschule institut akademie gesellschaft verein partei bundestag bundesrat ministerium gericht
        gerichtshof bundesverfassungsgericht rat ausschuss kommission verband bund stiftung zeitung verlag union kirche
        университет институт академия компания корпорация партия церковь совет комитет комиссия общество банк суд парламент
        министерство армия союз организация лига клуб театр музей ассоциация федерация
        université école société parti banque universidad partido banco""",
    "location": """river lake mount mountain mountains city county street avenue road square sea ocean island islands bay valley
        desert park forest province district state states region canal bridge castle palace airport stadium hall house tower
        cathedral coast gulf peninsula hills hill beach village town kingdom empire republic territory territories islands
        strait channel basin plateau creek falls garden gardens station building center centre library
        fluss see berg gebirge stadt straße platz meer ozean insel inseln bucht tal wüste wald provinz bezirk kreis schloss
        burg brücke flughafen stadion turm dom küste reich republik königreich kanal
        река озеро гора горы город улица площадь море океан остров острова залив долина пустыня провинция область район
        республика империя королевство штат округ край мост дворец замок собор""",
    "event": """war wars battle revolution rebellion revolt treaty conference olympics games cup bowl festival crisis massacre
        siege crusade crusades conquest uprising riots election elections championship tournament plague death exposition
        krieg schlacht revolution aufstand vertrag konferenz spiele
        война битва революция восстание договор конференция олимпиада кризис чемпионат""",
    "content": """act bill constitution declaration charter code bible koran quran album song film novel book journal magazine
        encyclopedia report edda saga
        gesetz verfassung grundgesetz erklärung конституция декларация хартия закон""",
    "concept": """theorem theory law laws equation principle hypothesis problem conjecture algorithm method effect syndrome disease
        theorie satz prinzip теория теорема принцип закон""",
}
HEAD_TYPES: Final[dict[str, str]] = {normalise(head): kind for kind, heads in _HEADS.items() for head in heads.split()}
GIVEN_NAMES: Final = _set(
    """aaron abraham adam adolf ahmed albert alexander alfred alice ali amy andrew angela ann anna anne anthony arnold arthur
    barack benjamin bernard beyoncé bill bob boris brian bruno bruce carl carol catherine charles charlotte chris christian
    christopher claude daniel david demaryius denis dennis diana donald dorothy douglas edgar edward elizabeth emily emma eric
    ernest ernst eugene eva felix ferdinand florence frances francis francisco frank franz fred frederick friedrich fritz
    gary george gerald gerhard gottfried grace greg gustav hans harold harry heinrich helen henry herbert hermann hugo ian igor
    isaac ivan jack jacob jacques james jane jason jean jeff jennifer jeremy jerry jim juan manuel jorge miguel rafael joan joe johann johannes john jonathan
    josé joseph josh juan julia julian julius karl kate katherine ken kenneth kevin kurt larry laura leo leonard leonid lewis
    lisa louis louise lucy ludwig luke margaret maria marie mark marlee martin mary matthew max michael michel mikhail mike
    mohammed mohamed muhammad nancy napoleon nicholas nikola nikolai nina oliver oscar otto pablo patrick paul pedro peter
    peyton philip philipp pierre rachel ralph raymond rebecca richard robert roger ron ronald rosa ruth ryan sam samuel sarah
    scott sergei sigmund simon sophia stefan stephen steve steven susan thomas tim timothy tom tony ulrich vasco victor
    victoria vincent vladimir walter werner wilhelm will william winston wolfgang
    александр алексей анна андрей антон борис вадим василий виктор владимир георгий григорий дмитрий екатерина елена иван
    игорь илья константин лев леонид мария михаил николай ольга павел пётр петр сергей татьяна фёдор юрий джон джеймс джордж
    уильям чарльз томас роберт ричард генри дэвид майкл мартин карл альберт никола фридрих людовик наполеон жан пьер рональд
    джозеф антуан вильгельм милтон гэри пол юджин герберт маргарет джон стивен эндрю эдвард фрэнк фрэнсис фредерик артур
    бенджамин барак христофор исаак якоб иоганн ганс отто вольфганг людвиг франц макс эмма луи клод виктория елизавета мария
    мухаммед ахмед али ибн исаак самуил авраам моисей марко паоло джузеппе леонардо федор петр"""
)
# Heads of official names that go on behind "on", "for" and "and": the General Conference on Weights and Measures.
OFFICIAL_HEADS: Final = _set(
    """conference council department ministry committee commission bureau office agency society association center centre
    board panel convention treaty act court fund campaign"""
)
SENTENCE_STARTERS: Final = _set(
    """earlier later early late modern many several local new old recent former professional private public typical common
    ancient traditional different various additional total annual economic political military scientific religious"""
)
ROLE_ENDS: Final = ("ist", "ier", "er", "or", "ian", "ant", "man", "woman")  # Economist Joseph Stiglitz
# German nouns all have capitals; these ends are those of words, hardly ever of names.
GERMAN_WORD_ENDS: Final = (
    "ung", "ungen", "heit", "heiten", "keit", "keiten", "schaft", "schaften", "tion", "tionen", "sion", "tät", "täten", "ismus",
    "ment", "mente", "nis", "nisse", "tum", "ling", "linge", "chen", "lein", "enz", "anz", "ur", "uren", "ist", "isten", "eur",
    "euren", "loge", "logen", "ologie", "graphie", "ik", "iker", "ung", "zeit", "jahr", "jahre", "jahren", "mann", "leute", "recht",
    "haus", "werk", "stück", "teil", "teile", "zahl", "kraft", "stoff", "system", "form", "art", "name", "namen", "wort", "weise",
    "punkt", "stelle", "kreis", "gruppe", "gruppen", "feld", "welt", "linie", "seite", "macht", "lehre", "kunde", "krieg", "geld",
    "fall", "frage", "ende", "grund", "satz", "gesetz", "spiel", "spiele", "platz", "raum", "bahn", "wagen", "schule", "schüler",
    "lehrer", "kind", "kinder", "familie", "arbeit", "bau", "plan", "rat", "amt", "gericht", "partei", "regierung", "gebiet",
    "gebiete", "ort", "orte", "handel", "preis", "wert", "ware", "waren", "rate", "raten", "test", "tests", "kopf", "kern",
    "rand", "bild", "bilder", "buch", "bücher", "blatt", "band", "netz", "weg", "wege", "tag", "tage", "dienst", "fluss",
)  # fmt: skip
