# ruff: noqa: E501, RUF001  markup in one line each, and texts in other scripts
"""Unusual PDFs, mails and texts, generated here; and all unusual files by name: bytes, required and forbidden text."""

import io
from email.message import EmailMessage

from PIL import Image, ImageDraw, ImageFont

from tests.workspaces.documents.odd_office import (
    DOCX,
    ODS,
    ODS_RARE,
    ODT,
    PPTX,
    XLSX_READ,
    template,
    xlsx_odd,
    xlsx_rare,
)

Odd = tuple[str, bytes, tuple[str, ...], tuple[str, ...]]


def pdf_objects(*objects: str) -> bytes:
    """Return a PDF of these objects, the first of which is its catalogue; readers rebuild the missing xref table."""
    body = "".join(f"{n} 0 obj {each} endobj\n" for n, each in enumerate(objects, 1))
    return f"%PDF-1.7\n{body}trailer << /Root 1 0 R /Size {len(objects) + 1} >>\n%%EOF".encode("latin-1")


def stream(content: str, fields: str = "") -> str:
    return f"<< /Length {len(content)} {fields} >>\nstream\n{content}\nendstream"


FONT = "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
PDF_FORM = pdf_objects(
    "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R 6 0 R 7 0 R 9 0 R] >> /Names << /EmbeddedFiles << /Names [(terms.txt) 10 0 R] >> >> >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R {FONT} /Annots [5 0 R 6 0 R 7 0 R 8 0 R 12 0 R] >>",
    stream("BT /F1 12 Tf 72 720 Td (Printed words) Tj ET"),
    "<< /Type /Annot /Subtype /Widget /FT /Tx /T (applicant) /V (Thaddeus Ormerod) /Rect [72 600 300 620] >>",
    "<< /Type /Annot /Subtype /Widget /FT /Ch /T (county) /V (Clare) /Opt [(Clare) (Kerry)] /Rect [72 560 300 580] >>",
    "<< /Type /Annot /Subtype /Widget /FT /Btn /T (insured) /V /Yes /AS /Yes /Rect [72 520 90 540] >>",
    "<< /Type /Annot /Subtype /Text /Contents (Sticky note Ballina) /Rect [300 700 320 720] >>",
    "<< /FT /Tx /T (hidden) /V <FEFF00530074007200E5006C> /Kids [12 0 R] >>",
    "<< /Type /Filespec /F (terms.txt) /UF (terms.txt) /EF << /F 11 0 R >> >>",
    stream("Attached 48,300 pounds", "/Type /EmbeddedFile"),
    "<< /Type /Annot /Subtype /Widget /Parent 9 0 R /Rect [72 480 300 500] >>",
)


PDF_RARE = pdf_objects(
    "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R] >> >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R {FONT} /Annots [5 0 R 6 0 R 7 0 R 10 0 R] >>",
    stream("BT /F1 12 Tf 72 720 Td (Printed words) Tj ET"),
    "<< /Type /Annot /Subtype /Widget /FT /Ch /Ff 2097152 /T (ports) /V [(Cobh) (Rosslare)] /Opt [(Cobh) (Rosslare) (Foynes)] /Rect [72 560 300 580] >>",
    "<< /Type /Annot /Subtype /Text /RC (<p>Rich Corofin</p>) /Rect [10 10 130 30] >>",
    "<< /Type /Annot /Subtype /FileAttachment /FS 8 0 R /Rect [10 50 30 70] >>",
    "<< /Type /Filespec /F (note.txt) /EF << /F 9 0 R >> >>",
    stream("Clipped Doolin", "/Type /EmbeddedFile"),
    "<< /Type /Annot /Subtype /FileAttachment /FS << /Type /Filespec /F (elsewhere.txt) /EF << >> >> /Rect [10 90 30 110] >>",
)


def picture_file(text: str = "Drawn words") -> bytes:
    """Return a JPEG of this text."""
    picture, out = Image.new("RGB", (1000, 160), "white"), io.BytesIO()
    ImageDraw.Draw(picture).text((20, 40), text, "black", ImageFont.load_default(48))
    picture.save(out, "JPEG")
    return out.getvalue()


def pdf_with_picture(drawn: str, printed: str, *, height: int) -> bytes:
    """Return a page with a picture of a text, and a printed text."""
    content = f"q 580 0 0 {height} 16 100 cm /X Do Q BT /F1 12 Tf 72 720 Td ({printed}) Tj ET"
    font = FONT.replace(">> >> >>", ">> >> /XObject << /X 5 0 R >> >>")
    return pdf_objects(
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R {font} >>",
        stream(content),
        stream(
            picture_file(drawn).decode("latin-1"),
            "/Type /XObject /Subtype /Image /Width 1000 /Height 160 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode",
        ),
    )


CALENDAR = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Dredging review\r\n"
    "DTSTART:20261009T140000Z\r\nLOCATION:Pier 4\\, Galway\r\nDESCRIPTION:Bring the soundi\r\n ngs of Lough Corrib\r\n"
    "ORGANIZER;CN=Ida Holt:mailto:ida@example.org\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def mail(text: str | None = "Body Tuam", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"] = headers.get("subject", "Subject Athlone"), "mona@example.org"
    if text is not None:
        made.set_content(text)
    return made


def mails() -> dict[str, tuple[bytes, tuple[str, ...], tuple[str, ...]]]:
    attached = mail()
    attached.add_attachment("Price is 48,300", filename="quote.txt")
    attached.add_attachment(
        DOCX["controls"][0], maintype="application", subtype="octet-stream", filename="form.docx"
    )
    attached.add_attachment(b"\0\1\2", maintype="application", subtype="octet-stream", filename="engine.bin")
    forwarded = mail("See below")
    inner = mail("Inner words of Nenagh", subject="Inner subject Birr")
    inner.add_attachment("Deepest 731", filename="deep.txt")
    forwarded.add_attachment(inner)
    invitation = mail("Please come")
    invitation.add_alternative(CALENDAR, subtype="calendar")
    only = mail(None)
    only.set_content(CALENDAR, subtype="calendar")
    stub = mail("This message needs a program that shows HTML.")
    stub.add_alternative("<p>The lease ends on 4 May, said Orla.</p>", subtype="html")
    empty = mail("\n")
    empty.add_alternative("<p>Only HTML of Trim</p>", subtype="html")
    lines = [f"Line {number} of a long letter about harbour works" for number in range(30)]
    longer = mail("\n".join(lines))
    longer.add_alternative(f"<p>{'<p>'.join(lines)}<p>Penalty 7,315 euros", subtype="html")
    cancelled = mail("x")
    cancelled.add_alternative(
        CALENDAR.replace("REQUEST", "CANCEL").replace("LOCATION", "DURATION:PT95M\nLOCATION"),
        subtype="calendar",
    )
    raw = (
        "From: a@example.org\nSubject: Rates\nContent-Type: text/plain{}\nContent-Transfer-Encoding: 8bit\n\n"
    )
    return {
        "attached.eml": (
            attached.as_bytes(),
            ("Body Tuam", "48,300", "Block Ottoline", "engine.bin"),
            (),
        ),
        "forwarded.eml": (
            forwarded.as_bytes(),
            ("See below", "Inner subject Birr", "Inner words of Nenagh", "Deepest 731"),
            (),
        ),
        "invitation.eml": (
            invitation.as_bytes(),
            ("Please come", "Dredging review", "Pier 4, Galway", "soundings of Lough Corrib", "Ida Holt"),
            (),
        ),
        "only.eml": (only.as_bytes(), ("Dredging review",), ()),
        "stub.eml": (stub.as_bytes(), ("4 May, said Orla",), ()),
        "empty.eml": (empty.as_bytes(), ("Only HTML of Trim",), ()),
        "unknown charset.eml": (
            raw.format("; charset=x-weird-9").encode() + "Fee 64 £ at Célbridge".encode("cp1252"),
            ("Fee 64 £ at Célbridge",),
            (),
        ),
        "no charset.eml": (
            raw.format("").encode() + "Сбор за стоянку 64 фунта в порту Галифакс сегодня".encode("cp1251"),
            ("Сбор за стоянку 64 фунта",),
            (),
        ),
        "longer.eml": (longer.as_bytes(), ("Penalty 7,315 euros",), ()),
        "cancelled.eml": (cancelled.as_bytes(), ("CANCEL", "PT95M"), ()),
        "mark.eml": (
            b"\xef\xbb\xbf" + raw.replace("8bit", "base64").format("").encode() + b"TWFya2VkIENvbmc=",
            ("Marked Cong",),
            (),
        ),
        "wider charset.eml": (
            raw.format("; charset=shift_jis").encode() + "会議①は髙橋さんが担当。".encode("cp932"),
            ("髙橋さん",),
            (),
        ),
        "two charsets.eml": (
            raw.replace("plain", "html").format("; charset=utf-8").encode()
            + '<meta charset="windows-1251"><p>Привет'.encode(),
            ("Привет",),
            (),
        ),
        "one.mbox": (mail("Single Emo").as_bytes(), ("Single Emo",), ()),
        "raw header.eml": (
            "From: Zoë <z@example.org>\nSubject: Café Ring\n\nWords of Kells".encode(),
            ("Café Ring", "Words of Kells"),
            (),
        ),
        "box.mbox": (
            b"From a@example.org Mon Mar  2 10:00:00 2026\n"
            + mail("First Naas", subject="One").as_bytes()
            + b"\n>From the quay\n\nFrom b@example.org Mon Mar  2 11:00:00 2026\n"
            + mail("Second Bray", subject="Two").as_bytes(),
            ("First Naas", "Second Bray", "From the quay", "Two"),
            (),
        ),
        "page.mht": (
            b"From: <Saved by Blink>\nSubject: Page Clonmel\nMIME-Version: 1.0\n"
            b'Content-Type: multipart/related; type="text/html"; boundary="b"\n\n--b\n'
            b"Content-Type: text/html; charset=windows-1251\nContent-Transfer-Encoding: quoted-printable\nContent-Location: http://x/\n\n"
            b"<html><body><h1>Head</h1><p>=CF=F0=E8=E2=E5=F2 saved words</p></body></html>\n--b\n"
            b"Content-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Location: http://x/a.png\n\niVBORw0KGgo=\n--b--\n",
            ("Привет saved words",),
            (),
        ),
    }


RUSSIAN = "Насосная станция на мысе Белом выдает мощность 84 кубометра каждый час по утрам."
CHINESE = "温度计存放在第三仓库里，一共有四百一十八个，由仓库管理员王先生保管。"
JAPANESE = "品目は温度計です。第三倉庫には四百十八個あります。担当は田中さんです。"
KOREAN = "온도계는 세 번째 창고에 사백십팔 개가 있습니다. 담당자는 김 선생님입니다."
FRENCH = "Le déjeuner est à Évreux près de la forêt; l'été où il a été prêté, ça coûte très cher là-bas."
CODED = {
    "cp1251": (RUSSIAN, "cp1251"),
    "koi8": (RUSSIAN, "koi8-r"),
    "gbk": (CHINESE, "gbk"),
    "sjis": (JAPANESE, "shift_jis"),
    "euckr": (KOREAN, "euc_kr"),
    "mac": (FRENCH, "mac_roman"),
    "cp1252": (FRENCH, "cp1252"),
    "utf16le": (FRENCH, "utf-16-le"),
    "utf16be": (RUSSIAN, "utf-16-be"),
    "utf16": (FRENCH, "utf-16"),
    "utf8": (FRENCH, "utf-8-sig"),
}
RTF = (
    b"{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}{\\info{\\author Hiddenauthor}}\\f0 The depot at M\\'fcnster stores 312 barrels.\\par "
    b"{\\*\\generator Hiddengen;}Contact: Annelie Vo\\u223?.\\par\\trowd\\cellx100\\cellx200 Tank\\cell Litres\\cell\\row}"
)


RTF_RARE = (
    b"{\\rtf1\\ansi Fee {\\deleted 4{\\b 200}}{\\revised 5850}.{\\shp{\\*\\shpinst{\\sp{\\sn Colour}{\\sv 1}}{\\shptxt Box Tullow\\par}}}"
    b"{\\*\\annotation Note Tallaght}{\\pict\\wmetafile8 0102}{\\pict\\jpegblip\\bliptag1{\\*\\blipuid ab}"
    + picture_file().hex().encode()
    + b"}}"
)


def odd_files() -> list[Odd]:
    found: list[Odd] = [(f"{name}.docx", *rest) for name, rest in DOCX.items()]
    found += [(f"{name}.pptx", *rest) for name, rest in PPTX.items()]
    word_kind, slide_kind = (f"application/vnd.{of}.%s.main+xml" for of in ("openxmlformats-officedocument.wordprocessingml", "openxmlformats-officedocument.presentationml"))  # fmt: skip
    macro = "application/vnd.ms-{}.{}.macroEnabled.main+xml"
    tracked, grouped = DOCX["tracked"], PPTX["groups"]
    found += [
        ("t.dotx", template(tracked[0], word_kind % "template"), *tracked[1:]),
        ("t.docm", template(tracked[0], macro.format("word", "document")), *tracked[1:]),
        ("t.dotm", template(tracked[0], macro.format("word", "template")), *tracked[1:]),
        ("t.potx", template(grouped[0], slide_kind % "template"), *grouped[1:]),
        ("t.ppsx", template(grouped[0], slide_kind % "slideshow"), *grouped[1:]),
        ("t.pptm", template(grouped[0], macro.format("powerpoint", "presentation")), *grouped[1:]),
        ("odd.xlsx", xlsx_odd(), XLSX_READ, ()),
        ("odd.xlsm", template(xlsx_odd(), macro.format("excel", "sheet")), XLSX_READ, ()),
        (
            "odd.odt",
            ODT,
            ("Rhiannon", "Shed 12", "inserted Brill", "Footnote Kell", "Annotation Mull", "Item Ennis",
             "Deeper Tralee", "Box Sligo", "Alt Cavan", "Section Louth", "North tank", "Header Antrim", "Form Moyvane"),
            ("Goneby", "KeeperRhiannon", "RhiannonVaughan", "VaughanShed", "12Pwllheli"),
        ),
        ("odd.ods", ODS, ("17.5%", "09/10/26", "Comment Offaly", "[.A1]+2"), ()),
        ("form.pdf", PDF_FORM, ("Printed words", "Thaddeus Ormerod", "Clare", "insured", "Sticky note Ballina", "Strål", "48,300"), ()),
        ("odd.rtf", RTF, ("Münster stores 312 barrels", "Annelie Voß", "Tank"), ("rtf1", "Hiddengen", "cellx")),
        ("rare.pdf", PDF_RARE, ("Cobh, Rosslare", "Rich Corofin", "Clipped Doolin", "not read: elsewhere.txt"), ("Foynes",)),
        ("rare.xlsx", xlsx_rare(), ("Berth | =SUM(A1:A3*731)", "Head Lusk", "Chartsheet Naul"), ("object at",)),
        ("rare.ods", ODS_RARE, ("6612 | 2026-10-09", "Sheet box Cahir", "Head Tralee", "Chart Gort"), ()),
        ("saved.html", mails()["page.mht"][0], ("Привет saved words",), ()),
        ("cut.txt", (RUSSIAN * 3).encode()[:-1] + b"\xe9", (RUSSIAN,), ()),
        ("short cp1251.txt", "Цена: 84 рубля".encode("cp1251"), ("Цена: 84 рубля",), ()),
        ("short mac.txt", "Le café d’Évreux est fermé".encode("mac_roman"), ("café d’Évreux",), ()),
        ("short eucjp.txt", "鍵は田中さんが第三倉庫に持つ".encode("euc_jp"), ("第三倉庫に持つ",), ()),
        ("jis.txt", JAPANESE.encode("iso2022_jp"), (JAPANESE,), ()),
        ("rare.rtf", RTF_RARE, ("Fee 5850", "Box Tullow", "Note Tallaght"), ("4200", "Colour")),
        *((name, *rest) for name, rest in mails().items()),
        *((f"{name}.txt", text.encode(code), (text,), ()) for name, (text, code) in CODED.items()),
        ("coded.csv", "город;склад\nОмск;третий склад на берегу\nПермь;пятый склад в лесу\n".encode("cp1251"), ("третий склад на берегу",), ()),
        ("one cell.csv", ("The whole contract in one cell; with a semicolon, a comma. " * 40).encode(), ("in one cell; with a semicolon, a comma",), ()),
        ("sep.csv", b"sep=|\nDepot|Manager\nHolyhead|Glenys; Parry\n", ("Depot | Manager", "Holyhead | Glenys; Parry"), ("sep=",)),
        ("tabs.tsv", b"Depot\tManager\nHoly, head\tGlenys\n", ("Depot | Manager", "Holy, head | Glenys"), ()),
        ("semicolons.csv", b"Depot;Price\nHolyhead;1,50\nBangor;2,75\n", ("Holyhead | 1,50",), ()),
        ("agreement.doc", tracked[0], *tracked[1:]),
        ("no ending", tracked[0], *tracked[1:]),
        ("file.docx (1)", tracked[0], *tracked[1:]),
        ("slides.zip", grouped[0], *grouped[1:]),
        ("report.pdf", tracked[0], *tracked[1:]),
        ("letter.docx", RTF, ("312 barrels",), ("rtf1",)),
        ("letter.doc", RTF, ("312 barrels",), ("rtf1",)),
        ("sheet.xls", b"<html><body><table><tr><td>Exported</td><td>Laois 77</td></tr></table></body></html>", ("Laois 77",), ("<td>",)),
        ("saved", mails()["forwarded.eml"][0], ("Inner words of Nenagh", "Deepest 731"), ()),
        ("calendar.ics", CALENDAR.encode(), ("Dredging review", "soundings of Lough Corrib"), ()),
    ]  # fmt: skip
    return found
