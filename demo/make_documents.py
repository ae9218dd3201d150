"""Writes the demo's PDF and DOCX. Both are committed; run this again only after changing their text."""

from pathlib import Path

from docx import Document
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

FOLDER = Path(__file__).parent / "documents"

CONTRACT = (
    (
        "Supply contract between Harbor Works and Kestrel Polymers",
        "This contract was signed in Lisbon on 2 April 2023 by Marta Oliveira for Harbor Works and by Samuel Adeyemi for "
        "Kestrel Polymers. Kestrel Polymers makes seals for the Tideline Sensor in its plant in Porto.",
        "Kestrel Polymers delivers 1,200 seals in each quarter. A seal costs 4.80 euro. Harbor Works pays within 30 days.",
        "The seals are made from compound KP-12, which stays elastic down to minus 40 degrees. Kestrel Polymers may not "
        "change the compound without the written approval of Jonas Weber.",
    ),
    (
        "Quality and liability",
        "Each delivery is tested by sampling. Ten seals of each thousand are sent to Nordsee University, where Professor "
        "Ingrid Solberg keeps them in the ice chamber for six weeks.",
        "If more than one seal in a hundred fails, Kestrel Polymers replaces the whole delivery and pays a penalty of "
        "15,000 euro. The penalty was agreed after the recall of March 2023, which had been caused by seals of another "
        "supplier, Brightseal GmbH.",
        "The contract ends on 31 March 2028. The courts of Lisbon decide disputes.",
    ),
)

PROFILE = (
    ("Elena Petrova: a portrait", 0),
    (
        "Elena Petrova leads the research group of Harbor Works in Hamburg. She was born in Varna, studied physics in "
        "Sofia and wrote her doctoral thesis on currents in the Black Sea at Nordsee University under Professor Ingrid "
        "Solberg.",
        None,
    ),
    ("At Harbor Works", 1),
    (
        "Jonas Weber hired Elena Petrova in 2016. She designed the Quay Twin and named it after the quay in Varna where "
        "her father worked as a pilot. In 2023 E. Petrova found the cause of the Tideline Sensor recall.",
        None,
    ),
    ("Prizes", 1),
    (
        "In 2022 E. Petrova received the Bluewater Prize for the silt model of the Quay Twin. She shared it with "
        "Professor Ingrid Solberg. The prize money of 50,000 euro went to a sailing school in Varna.",
        None,
    ),
)


def write_contract(path: Path) -> None:
    styles = getSampleStyleSheet()
    story: list[object] = []
    for number, (heading, *paragraphs) in enumerate(CONTRACT):
        if number:
            story.append(PageBreak())
        story.append(Paragraph(heading, styles["Heading1"]))
        for text in paragraphs:
            story += [Paragraph(text, styles["BodyText"]), Spacer(1, 8)]
    # `invariant` leaves out the time of writing, so that equal text gives an equal file.
    SimpleDocTemplate(str(path), pagesize=A4, title=CONTRACT[0][0], invariant=1).build(story)


def write_profile(path: Path) -> None:
    document = Document()
    for text, level in PROFILE:
        if level is None:
            document.add_paragraph(text)
        else:
            document.add_heading(text, level)
    document.core_properties.title = PROFILE[0][0]
    document.save(str(path))


if __name__ == "__main__":
    write_contract(FOLDER / "05-kestrel-contract.pdf")
    write_profile(FOLDER / "06-elena-petrova.docx")
