"""Function words by language, in the normal form of ``words.normalise``: words that name nothing by themselves.

Short lists written for this project: a longer list would also drop words that people search for.
"""

from app.text.concepts.words import normalise

_WORDS: dict[str, str] = {
    "en": """a about above after again against all almost alone along already also although always am among an and another
        any anyone anything are around as at away back be became because become been before behind being below between both
        but by came can cannot could did do does doing done down during each either else enough etc even ever every few first
        for from further get gets give given go goes going got had has have having he hence her here hers herself him himself
        his how however i if in indeed instead into is it its itself just keep last least less let like made main mainly make
        makes many may me might mine more moreover most mostly much must my myself namely near neither never nevertheless
        next no nobody none nor not nothing now nowhere of off often on once one only onto or other others otherwise our ours
        out over own part per perhaps please put quite rather really same see seem seemed several shall she should since so
        some someone something sometimes soon still such take than that the their theirs them themselves then there thereby
        therefore these they this those though through throughout thus to together too toward towards two under unless until
        up upon us used using very via was we well went were what whatever when whence where whereas whether which while who
        whoever whole whom whose why will with within without would yes yet you your yours yourself let's don't doesn't didn't
        isn't aren't wasn't weren't can't won't it's that's there's what's""",
    "de": """aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus außer außerdem
        bei beide beiden beim bereits bis bisher bist bzw da dabei dadurch dafür dagegen daher dahin damit danach daneben dann
        daran darauf daraus darf darin darum darunter darüber das dass davon davor dazu dein deine dem den denen denn dennoch
        der deren des deshalb dessen die dies diese diesem diesen dieser dieses doch dort du durch ebenfalls ebenso ein eine
        einem einen einer eines einige einigen einiger einmal er erst es etwa etwas euch euer für ganz gegen genug gewesen
        hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem
        infolge innerhalb ins insbesondere ist ja jede jedem jeden jeder jedes jedoch jene jenem jenen jener jenes jetzt kann
        kein keine keinem keinen keiner können könnte könnten laut man manche mehr mein meine meist mit mittels muss musste
        müssen nach nachdem neben nicht nichts noch nun nur ob obwohl oder oft ohne schon sehr sei sein seine seinem seinen
        seiner seines seit selbst sich sie sind so sogar solche sollte sondern sonst soweit sowie sowohl statt trotz um und
        uns unser unter viel viele vielen vom von vor wann war waren warum was weder wegen weil weiter weitere weiteren welche
        welchem welchen welcher welches wem wen wenig weniger wenn wer werde werden wessen wie wieder will wir wird wo wobei
        wohl wollen worden wurde wurden während zu zudem zum zur zwar zwei zwischen zwecks über""",
    "fr": """à afin ai ainsi alors au aucun aussi autre autres aux avaient avait avant avec avoir beaucoup car ce ceci cela
        celle celles celui cependant ces cet cette ceux chaque chez comme comment dans de depuis des donc dont du elle elles
        en encore entre est et étaient était été être eu il ils jamais je la laquelle le lequel les leur leurs lors lui mais
        même moins ne non nos notre nous on ont ou où par parce pas pendant peu peut plusieurs pourquoi puis quand que quel
        quelle quelles quels qui quoi sa sans se selon ses si soit son sont sous sur tandis tous tout toute toutes très un une
        vers voici vos votre vous y""",
    "es": """al algo alguna algunas alguno algunos ante antes aquel aquella así aun aunque bajo bien cada casi como con contra
        cual cuales cuando de del desde donde dos durante e el él ella ellas ellos en entre era eran es esa ese eso esta está
        estaba este esto estos fue fueron ha había hasta hay la las le les lo los más me mientras muy nada ni no nos o os otra
        otras otro otros para pero por porque pues que qué quien se según ser si sido sin sobre son su sus también tan tanto
        te tiene todo todos tras un una uno unos y ya yo""",
    "it": """agli ai al alla alle allo anche avere aveva che chi ci come con contro cui da dagli dai dal dalla dalle degli dei
        del della delle dello di dove e è ed era erano essere fino fra gli ha hanno i il in io la le lei lo loro ma mentre nei
        nel nella nelle non o ogni per perché più poi quale quando quella quelle quelli quello questa queste questi questo se
        si sia sono stata stato su sua sue sugli sui sul sulla suo suoi tra tutti tutto un una uno""",
    "pt": """a ao aos as até com como da das de depois desde do dos e é ela elas ele eles em entre era eram essa esse esta está
        este eu foi foram há isso já lhe mais mas mesmo muito na nas nem no nos não nós o os ou para pela pelas pelo pelos por
        porque quais qual quando quem que se sem ser seu seus sobre sua suas também tem um uma""",
    "nl": """aan al alle als bij daar dan dat de der deze die dit doch door dus een en er ge geen had heb hebben heeft hem het
        hij hoe hun iemand iets ik in is ja je kan kon maar meer met mij mijn moet na naar niet niets nog nu of om omdat onder
        ons ook op over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat werd wezen wie wij wil worden
        wordt zal ze zei zelf zich zij zijn zo zonder zou""",
    "ru": """а без более больше будет будто бы был была были было быть в вам вас ведь весь во вот все всего всех всю вы где да
        даже для до другой другие его ее ей ему если есть еще ж же за здесь и из или им ими иногда их к каждый как какая
        какие какой когда кого которая которого которое которой которых которые который кроме кто куда ли либо лишь между
        менее меня мне много может можно мой мы на над надо нас наш не него нее ней некоторые несколько нет ни них ничего но
        ну о об обычно один однако он она они оно от очень перед по под после потом потому почему почти поэтому при про раз
        с сам самый свое своей своего свои своих свою себе себя сейчас со среди так также такие такой там тем теперь то тогда
        того тоже той только том тот туда ты у уже хотя чего чей чем через что чтобы чья эта эти этих это этого этой этом
        этот эту я является являются""",
    "ar": """في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين اللذان اللتان ما ماذا متى أين كيف لماذا هل لا لم لن ليس ليست
        كان كانت كانوا يكون تكون قد لقد أن إن أنه أنها إنه إنها أو ثم كما كل كلا بعض غير بين حتى حيث خلال عند عندما بعد قبل
        منذ فوق تحت أمام حول دون ضد هو هي هم هن نحن أنا أنت له لها لهم به بها بهم فيه فيها فيهم منه منها منهم عليه عليها عليهم
        إليه إليها وهو وهي وقد وكان وكانت ولم ولا أي أية أيضا إذا إذ لكن ولكن بل لأن مثل نحو أكثر أقل جدا فقط بسبب كذلك هناك
        هنا يمكن تم يتم ذات وذلك ومن وفي التى الى او ان انه انها عام بأن كم لدى سوف ربما عدة""",
    "he": """של על את אל עם זה זו זאת הוא היא הם הן אני אתה אנחנו לא כן כי אם או גם רק כל יותר מאוד היה היתה הייתה היו להיות
        יש אין בין לפני אחרי עד כאשר אשר מה מי איך למה איפה כמו אבל אלא שלו שלה שלהם""",
    "hi": """और का के की को में से है हैं था थी थे पर ने यह वह ये वे इस उस इन उन एक लिए साथ भी नहीं तो ही कर करने करना किया
        किए गया गई गए जा जो जिस जिसे जिसके क्या कौन कब कहाँ कहां क्यों कैसे कितने कितना कितनी किस किसने किसे अपने अपनी अपना हो
        होता होती होते होने हुआ हुई हुए रहा रही रहे था या तथा एवं लेकिन जब तब तक बाद पहले द्वारा वाले वाली वाला कुछ सभी कई
        बहुत अधिक उनके उनकी उसके उसकी इसके इसकी इसे उन्हें उन्होंने इसमें जैसे दौरान फिर अब यदि कि न रूप दिया कहा सकता सकते
        सकती करता करते करती""",
    "th": """ที่ และ ใน ของ เป็น การ มี ได้ ให้ ว่า จาก ไม่ กับ ความ โดย นี้ นั้น ซึ่ง ก็ จะ แต่ หรือ คือ อยู่ ถูก กว่า เมื่อ เพื่อ ไป มา ทำ
        แล้ว ยัง อีก ต้อง ต่อ ตาม ถึง ทั้ง ผู้ เขา พวกเขา เธอ มัน อะไร ใคร ไหน อย่างไร เท่าไร เท่าใด เท่าไหร่ ทำไม เพราะ ด้วย หนึ่ง คน ปี
        นอก บาง ทุก แห่ง ระหว่าง หลัง ก่อน ขึ้น ลง ออก เข้า มาก หลาย กัน เช่น ใด เกี่ยวกับ ภายใน สามารถ อย่าง ดังกล่าว""",
    "zh": """的 了 和 是 在 有 我 他 她 它 们 我们 你们 他们 她们 它们 这 那 这个 那个 这些 那些 这种 这样 那样 一个 一种 一些 一
        不 也 都 就 而 及 与 或 以 及其 以及 因为 所以 但是 但 如果 虽然 由于 为 为了 对 对于 从 到 由 于 被 把 将 向 之 其 其中
        并 并且 并不 没有 不是 还是 还 还有 可以 可能 能够 能 会 要 应该 已经 已 曾 曾经 正在 进行 通过 根据 关于 什么 哪 哪个
        哪些 哪里 谁 为什么 怎么 怎样 如何 多少 几 何 何时 何处 时 时候 之后 之前 以后 以前 之间 后 前 中 上 下 里 内 外 当 当时
        同时 此 此外 另外 因此 例如 比如 等 等等 所 者 更 最 很 非常 比较 只 只有 只是 自己 本 该 各 每 每个 某 某些 其他 其它
        所有 许多 很多 大量 大部分 不同 成为 作为 称为 认为 表示 包括 之一 開始 开始 不会 不能 就是 也是 使用 這 個 們 沒有 為 與""",
    "ja": """これ それ あれ この その あの ここ そこ どこ いつ だれ なに なぜ どの どう ため こと もの とき ところ よう また および
        として について による によって した する して いる ある れる られる です ます ない なる 等 的 中 上 下 後 前 者 私 彼 彼女""",
    "ko": """그 이 저 것 수 등 및 또는 그리고 그러나 하지만 그래서 또한 때문에 위해 대한 대해 통해 있는 있다 있었다 없는 없다
        하는 하다 했다 되는 된다 되었다 이다 입니다 그는 그녀는 그들은 무엇 누구 언제 어디 어떻게 왜 어떤 모든 다른 가장 더""",
}
LANGUAGES = tuple(_WORDS)
BY_LANGUAGE: dict[str, frozenset[str]] = {
    language: frozenset(normalise(word) for word in words.split()) for language, words in _WORDS.items()
}
# Function words of one language that name things in English; losing "war" in English costs more than keeping it in German.
# fmt: off
_CONTENT_IN_ENGLISH = frozenset({
    "bin", "car", "con", "die", "dies", "dove", "door", "era", "hat", "man", "pour", "son", "tan", "toe", "want", "war",
})
# fmt: on
FUNCTION_WORDS: frozenset[str] = frozenset[str]().union(*BY_LANGUAGE.values())
"""Function words of every language here."""
STOP_WORDS: frozenset[str] = FUNCTION_WORDS - _CONTENT_IN_ENGLISH
"""Function words of every language here, for texts whose language is not known."""
