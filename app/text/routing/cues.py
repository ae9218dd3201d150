"""Words and phrases that tell kinds of questions apart, by language.

A cue is a phrase in lower case. `word*` stands for any word that begins so, `..` for up to sixty characters between two
words. `COMPARES`, `RELATES`, `SURVEYS` and `ROLES` count in any language; `CLAUSES` and `GENITIVES` are small words that mean other
things elsewhere, so they count in questions of their own language only.
"""

from collections.abc import Mapping
from typing import Final

Cues = Mapping[str, tuple[str, ...]]


def _cues(**languages: str) -> dict[str, tuple[str, ...]]:
    """Cues stand between commas."""
    return {language: tuple(cue.strip() for cue in text.split(",")) for language, text in languages.items()}


COMPARES: Final[Cues] = _cues(
    en="""compare*, comparison*, contrast*, differ, differs, difference*, different from, versus, vs, in common, both, alike,
        similar to, unlike, more .. than, less .. than, fewer .. than, older .. than, larger .. than, longer .. than,
        earlier .. than, higher .. than, bigger .. than, which of, which .. or, who .. first .. or, who .. or, the same .. as,
        as .. as, whereas, opposed to, older or, first or""",
    de="""vergleich*, verglichen, unterschied*, unterscheid*, im gegensatz, gegenüber .. von, beide, beiden, gemeinsam .. haben,
        haben .. gemeinsam, gemeinsamkeit*, ähnlich*, mehr .. als, weniger .. als, älter .. als, größer .. als, höher .. als,
        früher .. als, länger .. als, welche* .. oder, wer .. oder, was .. oder, derselbe*, dieselbe*, denselben, ebenso .. wie,
        genauso .. wie, sowohl""",
    fr="""compar*, différence*, diffère*, différent de, par rapport, plus .. que, moins .. que, tous deux, toutes deux, les deux,
        en commun, points communs, semblable*, similaire*, lequel .. ou, laquelle .. ou, quel .. ou, quelle .. ou, qui .. ou,
        le même .. que, la même .. que, aussi .. que, contrairement""",
    es="""compar*, diferencia*, difiere*, distingue*, más .. que, menos .. que, mayor .. que, menor .. que, ambos, ambas,
        en común, similar*, parecid*, cuál .. o, quién .. o, qué .. o, igual que, el mismo .. que, la misma .. que, tanto .. como,
        frente a, a diferencia""",
    ru="""сравн*, отлича*, отличие, отличия, различ*, разниц*, по сравнению, больше .. чем, меньше .. чем, раньше .. чем,
        позже .. чем, старше .. чем, выше .. чем, крупнее .. чем, дольше .. чем, кто .. или, что .. или, как* .. или, где .. или,
        оба, обе, обоих, обеих, общего, общие, похож*, одинаков*, тот же .. что, в отличие""",
    ar="""قارن*, مقارنة, المقارنة, الفرق, فرق, الفروق, يختلف, تختلف, اختلاف, الاختلاف, أكثر .. من, أقل .. من, أكبر .. من, أقدم .. من,
        أطول .. من, أعلى .. من, أم, كلا, كلتا, كلاهما, مشترك, مشتركة, المشترك, المشتركة, يشبه, تشبه, أيهما, أيهم, بخلاف""",
    zh="""比较, 相比, 对比, 区别, 不同, 差别, 差异, 差距, 异同, 共同点, 共同之处, 都是, 哪个更, 哪一个更, 哪家更, 哪座更, 谁更, 更早, 更晚, 更大,
        更高, 更长, 更多, 更老, 还是, 一样, 两者, 相同""",
)

RELATES: Final[Cues] = _cues(
    en="""relation*, related, relate, relates, connect*, link, links, linked, tie, ties, tied, associat*, affiliat*, between,
        work* with, work* together, cooperat*, collaborat*, partner*, interact*, influence*, involved, to do with, role .. in,
        role .. for, depend*, belong* to, contribut*""",
    de="""beziehung*, verbinde*, verbindung*, verbunden, zusammenhang*, hängt .. zusammen, hängen .. zusammen, zwischen, zu tun,
        arbeite* .. mit, arbeite* .. zusammen, zusammenarbeit*, partner*, beteilig*, verhältnis*, kooperier*, kooperation*,
        verknüpf*, einfluss*, rolle .. bei, rolle .. für, rolle .. in, gehör* .. zu, abhäng*, hängt .. ab""",
    fr="""relation*, lien, liens, lié, liée, liés, liées, relie*, entre, travaille* .. avec, collabor*, partenaire*, partenariat*,
        rôle .. dans, rôle .. pour, associ*, coopér*, appartien* .. à, influence*, à voir avec, dépend*, rapport entre""",
    es="""relación, relaciones, relaciona*, vínculo*, vincul*, conect*, conexión, entre, trabaja* .. con, colabor*, socio*, alianza*,
        asoci*, papel .. en, papel .. para, que ver, coopera*, pertenec* .. a, influ*, depende*, une, unen""",
    ru="""связ*, отношен*, взаимо*, между, сотруднич*, партн*, работа* .. с, относится .. к, роль .. в, роль .. для, роль .. играет,
        играет .. роль, влия*, принадлеж*, участв*, участие, причаст*, завис*, имеет .. общее""",
    ar="""علاقة, العلاقة, علاقات, يرتبط, ترتبط, مرتبط, مرتبطة, ارتباط, الارتباط, صلة, الصلة, الرابط, يربط, تربط, بين, يتعاون, تتعاون,
        تعاون, التعاون, شريك, شراكة, الشراكة, دور, تأثير, يؤثر, تؤثر, ينتمي, تنتمي, يعتمد, تعتمد""",
    zh="关系, 关联, 联系, 之间, 合作, 有关, 相关, 扮演, 作用, 影响, 隶属, 属于, 连接, 依赖, 角色, 往来",
)

SURVEYS: Final[Cues] = _cues(
    en="""main theme*, key theme*, main topic*, key topic*, themes, topics, summar*, overview, overall, in general, main point*,
        key point*, main idea*, big picture, what is this .. about, what are these .. about, what are the documents about,
        what do the documents, what do these documents, across all, across the, throughout, all documents, all the documents,
        whole corpus, whole collection, entire collection, corpus, collection, recurring, most common, most often, trends,
        everything about, kinds of, sorts of, takeaway*, in a nutshell""",
    de="""hauptthem*, kernthem*, wichtigsten themen, wichtigsten punkte, themen, zusammenfass*, fass* .. zusammen, überblick,
        übersicht, insgesamt, im allgemeinen, im großen und ganzen, kernaussage*, worum geht es, wovon handel*, alle dokumente,
        allen dokumenten, aller dokumente, alle unterlagen, allen unterlagen, gesamten sammlung, ganzen sammlung, sammlung,
        bestand, unterlagen, wiederkehrend*, häufigsten, trends, arten von, quer durch, roter faden, rote faden""",
    fr="""thèmes principaux, principaux thèmes, grands thèmes, thèmes, sujets, résum*, aperçu, vue d'ensemble, dans l'ensemble,
        globalement, en général, idées principales, principales idées, points clés, points principaux, de quoi parle*,
        de quoi traite*, tous les documents, l'ensemble des documents, corpus, collection, récurrent*, tendances,
        le plus souvent, les plus fréquent*, types de, sortes de, synthèse""",
    es="""temas principales, principales temas, grandes temas, temas, asuntos, resum*, visión general, panorama, en general,
        en conjunto, globalmente, ideas principales, principales ideas, puntos clave, puntos principales, de qué trata*,
        de qué habla*, todos los documentos, conjunto de documentos, colección, corpus, recurrente*, tendencias, más frecuentes,
        se repite*, en el conjunto, más a menudo, tipos de, clases de, síntesis, sintetiza*""",
    ru="""основные темы, основных тем, главные темы, главных тем, ключевые темы, темы, тем, тематик*, обобщ*, резюм*, кратко изложи*,
        обзор*, в целом, в общем, о чём говор*, о чем говор*, о чём эти, о чем эти, о чём рассказ*, о чем рассказ*, о чём идёт речь,
        о чем идет речь, все документы, всех документ*, всем документ*, всей коллекции, коллекци*, корпус*, подборк*,
        повторя*, чаще всего, тенденци*, виды, главные мысли, основные выводы, общая картина, подведи*""",
    ar="""المواضيع الرئيسية, الموضوعات الرئيسية, المحاور, الأفكار الرئيسية, النقاط الرئيسية, المواضيع, الموضوعات, لخص, لخّص, ملخص, ملخصا,
        تلخيص, نظرة عامة, بشكل عام, عموما, إجمالا, عم تتحدث, عما تتحدث, ماذا تتناول, جميع الوثائق, كل الوثائق, جميع المستندات,
        كل المستندات, المجموعة, المتكررة, الاتجاهات, الأكثر شيوعا, أنواع""",
    zh="""主题, 主要内容, 主要话题, 话题, 总结, 概述, 概括, 总体, 整体, 综述, 概况, 概览, 归纳, 要点, 所有文件, 所有文档, 全部文件, 全部文档,
        这些文件, 这些文档, 这批文件, 这批资料, 这些资料, 资料库, 讲了什么, 讲的是什么, 关于什么, 主要讲, 常见, 反复出现, 趋势, 哪些方面, 哪几类, 哪些类型, 大意""",
)

# What is said of texts as such, whatever they are about: a question of nothing but these and function words asks about all.
MATERIAL: Final[Cues] = _cues(
    en="""document*, file, files, text, texts, paper, papers, page, pages, note, notes, report, reports, article*, record*, librar*, corpus,
        collection*, archive*, workspace*, knowledge, base, data, dataset*, material*, source*, content, contents, information,
        subject*, topic*, theme*, area*, field*, matter*, gist, thing*, people, kind, kinds, sort, sorts, type, types, here, there, main,
        contain*, cover*, deal*, treat*, describ*, writ*, wrote, discuss*, talk*, tell, tells, give, gives, show*, know*, learn*, find,
        found, ask*, answer*, say, says, said, list, mention*, speak*, included, including, available, stored, uploaded, everything,
        something, anything, generally, most*, all, please, concern*, address*""",
    de="""dokument*, datei*, text*, papier*, seite*, notiz*, bericht*, artikel*, bibliothek*, korpus, sammlung*, archiv*, wissen*,
        daten*, material*, quelle*, inhalt*, information*, thema, themen*, bereich*, gebiet*, fachgebiet*, gegenstand, gegenstände, sache*,
        unterlagen, arbeitsbereich*, hier, darin, enthalten, enthält, steh*, behandel*, befass*, beschäftig*, beschreib*, schreib*,
        geschrieben*, handel*, gehen, geht, sag*, wiss*, weiß, erfahr*, find*, gibt, geben, womit, worüber, worum, wovon, alles, etwas,
        hauptsächlich, vor allem, bitte, zeig*, nenn*""",
    fr="""document*, fichier*, texte*, papier*, page, pages, note, notes, rapport, rapports, article*, bibliothèque*, corpus, collection*,
        archive*, connaissance*, données, matériel*, source*, contenu*, information*, sujet*, thème*, domaine*, matière*, question,
        ici, là, il, elle, est, il-y-a, a-t-il, contien*, traite*, parle*, décri*, écri*, dit, disent, sait, savoir, trouve*, montre*,
        donne*, espace, travail, base, tout, principalement, aborde*, concerne*""",
    es="""documento*, archivo*, fichero*, texto*, papel, papeles, página*, nota, notas, informe*, artículo*, biblioteca*, corpus,
        colección, colecciones, conocimiento*, datos, material*, fuente*, contenido*, información, tema, temas, asunto*, área*, campo*, materia*,
        aquí, contien*, trata*, habla*, describ*, escrib*, escrit*, dice, dicen, sabe*, encuentra*, hay, muestra*, espacio, trabajo,
        base, todo, principalmente, aborda*""",
    ru="""документ*, файл*, текст*, бумаг*, страниц*, заметк*, отчёт*, отчет*, стать*, библиотек*, корпус*, коллекци*, архив*, знани*,
        данны*, материал*, источник*, содерж*, информаци*, тема, темы, тем, темах, област*, вопрос*, предмет*, здесь, тут, рассматрива*,
        описыва*, пиш*, написан*, говор*, рассказ*, идёт, идет, речь, посвящ*, касаю*, касает*, найти, есть, база, базе, рабоч*,
        пространств*, всё, все, пожалуйста, покажи*""",
    ar="""وثائق, الوثائق, وثيقة, الوثيقة, مستندات, المستندات, ملف, ملفات, الملفات, الملف, نص, نصوص, النصوص, صفحات, الصفحات, تقارير, التقارير,
        مقالات, المقالات, مكتبة, المكتبة, مجموعة, المجموعة, أرشيف, بيانات, البيانات, مواد, المواد, مصادر, المصادر, محتوى, محتويات, المحتوى,
        معلومات, المعلومات, موضوع, مواضيع, المواضيع, موضوعات, الموضوعات, مجالات, المجالات, هنا, تحتوي, يحتوي, تتناول, يتناول, تتحدث, يتحدث, تصف,
        يوجد, توجد, تقول, يقول, كتب, عم, عمّ, عما, ماذا, ما, هذه, هذا, في, عن, من, أي, التي""",
    zh="""这些, 这里, 这批, 这个, 文件, 文档, 文本, 资料, 材料, 页面, 笔记, 报告, 文章, 图书馆, 语料, 集合, 档案, 知识库, 知识, 数据, 来源, 内容, 信息, 主题, 话题,
        领域, 方面, 问题, 涉及, 包含, 包括, 讲述, 讲, 说, 写, 描述, 讨论, 介绍, 哪些, 什么, 有, 里, 的, 了, 是, 在, 都, 主要, 关于, 请, 告诉, 我, 一下, 所有, 全部, 库, 中, 里面,
        可以, 知道, 哪, 啊, 呢, 吗""",
)

# They ask for one thing, even of texts as such: who wrote this report?
SPECIFIC: Final[Cues] = _cues(
    en="who, whom, whose, when, where, how, why",
    de="wer, wem, wen, wessen, wann, wo, wie, warum, weshalb, wieso",
    fr="qui, quand, où, combien, comment, pourquoi",
    es="quién, quiénes, cuándo, dónde, cuánto, cuánta, cuántos, cuántas, cómo, por qué",
    ru="кто, кого, кому, чей, когда, где, куда, сколько, как, почему, зачем",
    ar="متى, أين, كم, كيف, لماذا",
    zh="谁, 何时, 什么时候, 哪里, 哪儿, 多少, 几, 怎么, 如何, 为什么",
)

# Who somebody is to a thing or a person, in place of a name.
ROLES: Final[Cues] = _cues(
    en="""founder*, head of, leader, director*, designer*, owner*, inventor*, author*, captain*, chair*, teacher*, manager*,
        husband*, wife, daughter*, son, sister*, brother*, successor*""",
    de="""gründer*, leiter, leiterin, vorsitzende*, direktor*, inhaber*, erfinder*, autor*, kapitän*, lehrer*, chef, chefin,
        schwester*, tochter, sohn, bruder*, nachfolger*""",
    fr="""fondateur*, fondatrice*, dirigeant*, directeur*, directrice*, propriétaire*, inventeur*, auteur*, capitaine*, professeur*,
        patron*, sœur*, frère*, fille, fils, mari, épouse""",
    es="""fundador*, director*, presidente, presidenta, dueño*, propietari*, inventor*, autor, autora, capitán*, profesor*, jefe,
        jefa, hermana*, hermano*, hija, hijo, esposa, marido""",
    ru="""основател*, директор*, руководител*, владел*, изобретател*, автор*, капитан*, наставник*, учител*, начальник*, сестр*,
        брат*, дочь, дочери, сын*, жена, муж*""",
    ar="""مؤسس*, مدير*, رئيس*, مالك*, مخترع*, مؤلف*, قبطان*, أستاذ*, معلم*, شقيق*, ابن*, زوج*""",
    zh="创办人, 创始人, 厂长, 董事长, 老师, 校长, 经理, 负责人, 老板, 发明者, 作者, 船长, 姐姐, 妹妹, 哥哥, 弟弟, 女儿, 儿子, 丈夫, 妻子",
)

# Relative clauses: the thing that is asked for is described by another one.
CLAUSES: Final[Cues] = _cues(
    en="that, which, who, whose, whom, where, in which, of which",
    de="""dessen, deren, welcher, welche, welches, wo""",
    fr="dont, qui, que, où, lequel, laquelle, duquel",
    es="que, cuyo, cuya, cuyos, cuyas, quien, donde, la cual, el cual",
    ru="котор*, чей, чья, чьё, чье, где",
    ar="الذي, التي, اللذان, اللتان, الذين, حيث",
    zh="那家, 那位, 那个, 那座, 那艘, 所在, 其, 该, 的那, 所",
)
GENITIVES: Final[Cues] = _cues(
    en="of, 's, by",
    de="des, der, von, vom",
    fr="de, du, des, d'",
    es="de, del",
    ru="того, той, тех",
    ar="لدى",
    zh="的",
)
LANGUAGES: Final = tuple(COMPARES)
