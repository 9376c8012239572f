# ruff: noqa: E501  markup in one line each, and texts in other scripts
"""Unusual office files, generated here: the bytes of each, its required and its forbidden text.

Each row is a feature of real files that simple test files lack: tracked changes, content controls, boxes, groups,
charts, comments.
"""

import io
import re
import zipfile
from collections.abc import Callable
from datetime import date
from typing import Any

import docx as word
import pptx as slides
from lxml import etree
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.formula import ArrayFormula

from tests.workspaces.documents.samples import archive

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SPACES = {
    "w": W,
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
}
NAMES = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in SPACES.items())
Odd = tuple[str, bytes, tuple[str, ...], tuple[str, ...]]


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str) -> str:
    return f"<w:p>{inner}</w:p>"


def saved(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def changed(office: bytes, change: Callable[[str, bytes], bytes | None], **more: str | bytes) -> bytes:
    """Return an office file with parts changed and added."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(office)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            after.writestr(name, change(name, before.read(name)) or before.read(name))
        for name, content in more.items():
            after.writestr(name, content)
    return out.getvalue()


def docx_with(body: str, **parts: str) -> bytes:
    """Return a Word document with this in its body; ``parts`` are further parts, with their relationship's type before
    "|".
    """
    made = word.Document()
    made.add_paragraph("Opening words")
    return _with_parts(saved(made), "word/", "word/document.xml", b"<w:sectPr", body, parts)


def _with_parts(
    office: bytes, folder: str, main: str, before: bytes, body: str, parts: dict[str, str]
) -> bytes:
    """Insert ``body`` before the last ``before`` of the part ``main``, and relate ``parts`` to it."""
    wrapped = etree.fromstring(f"<x {NAMES}>{body}</x>")
    inner = b"".join(etree.tostring(each) for each in wrapped)
    rels = main.rpartition("/")[0] + "/_rels/" + main.rpartition("/")[2] + ".rels"
    related = "".join(
        f'<Relationship Id="odd{n}" Type="{SPACES["r"]}/{name.partition("|")[0]}" Target="/{folder}{name.partition("|")[2]}"/>'
        for n, name in enumerate(parts)
    )

    def change(name: str, data: bytes) -> bytes | None:
        if name == main:
            head, mark, tail = data.rpartition(before)
            return head + inner + mark + tail
        if name == rels:
            return data.replace(b"</Relationships>", related.encode() + b"</Relationships>")
        return None

    return changed(
        office,
        change,
        **{folder + name.partition("|")[2]: content for name, content in parts.items()},
    )


def part(root: str, inner: str) -> str:
    return f"<{root} {NAMES}>{inner}</{root}>"


def sdt(inner: str) -> str:
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def cell(inner: str) -> str:
    return f"<w:tc><w:tcPr/>{inner}</w:tc>"


def table(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid>{''.join(rows)}</w:tbl>"


WHO = 'w:id="1" w:author="a" w:date="2026-01-01T00:00:00Z"'


def row(*cells: str, mark: str = "") -> str:
    return f"<w:tr>{mark}{''.join(cell(each) for each in cells)}</w:tr>"


def deleted(text: str) -> str:
    return f"<w:del {WHO}><w:r><w:delText>{text}</w:delText></w:r></w:del>"


def inserted(text: str) -> str:
    return f"<w:ins {WHO}>{run(text)}</w:ins>"


TEXT_BOX = (
    "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:inline><wp:docPr id='9' name='Box 1' descr='Plan of the mill'/>"
    "<a:graphic><a:graphicData uri='x'><wps:wsp><wps:txbx><w:txbxContent>"
    + paragraph(run("Boxed 41 degrees"))
    + "</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape>"
    "<v:textbox><w:txbxContent>"
    + paragraph(run("Boxed 41 degrees"))
    + "</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)
VML_BOX = f"<w:r><w:pict><v:shape><v:textbox><w:txbxContent>{paragraph(run('Old box Wexcombe'))}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
CHART_2016 = (
    '<cx:chartSpace xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"><cx:chartData><cx:data id="0">'
    '<cx:strDim type="cat"><cx:lvl><cx:pt idx="0">Opening Tuam</cx:pt></cx:lvl></cx:strDim>'
    '<cx:numDim type="val"><cx:lvl><cx:pt idx="0">7741</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData></cx:chartSpace>'
)
OLD_LIST = (
    "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='Cork'/>"
    "<w:listEntry w:val='Sligo'/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r>"
)
DOCX: dict[str, tuple[bytes, tuple[str, ...], tuple[str, ...]]] = {
    "tracked": (
        docx_with(
            paragraph(
                run("The fee is ")
                + deleted("4,200")
                + inserted("5,850")
                + run(" euros.")
            )
            + paragraph(f"<w:moveFrom {WHO}>{run('Moved Larkfield clause')}</w:moveFrom>")
            + paragraph(run("Between."))
            + paragraph(f"<w:moveTo {WHO}>{run('Moved Larkfield clause')}</w:moveTo>")
            + paragraph(f"<w:ins {WHO}>{deleted('Neverseen')}</w:ins>")
            + table(
                row(paragraph(deleted("Goneaway")), mark=f"<w:trPr><w:del {WHO}/></w:trPr>"),
                row(paragraph(inserted("Row Pendle")), mark=f"<w:trPr><w:ins {WHO}/></w:trPr>"),
            )
        ),
        ("The fee is 5,850 euros.", "Moved Larkfield clause", "Row Pendle"),
        ("4,200", "Neverseen", "Goneaway"),
    ),
    "controls": (
        docx_with(
            sdt(paragraph(run("Block Ottoline")))
            + paragraph(run("Line ") + sdt(run("Inline Brack")))
            + table(
                sdt(row(paragraph(run("Row V-17")), paragraph(run("83 metres")))),
                f"<w:tr>{cell(paragraph(run('Beside')))}{sdt(cell(paragraph(run('Cell Kestrel'))))}</w:tr>",
            )
            + sdt(sdt(paragraph(sdt(sdt(run("Deep Marrick"))))))
        ),
        ("Block Ottoline", "Line Inline Brack", "Row V-17", "83 metres", "Cell Kestrel", "Deep Marrick"),
        (),
    ),
    "fields": (
        docx_with(
            paragraph(
                run("Due ")
                + "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText> DATE HIDDENCODE </w:instrText></w:r>"
                "<w:r><w:fldChar w:fldCharType='separate'/></w:r>"
                + run("9 October")
                + "<w:r><w:fldChar w:fldCharType='end'/></w:r>"
            )
            + paragraph(run("Ref ") + f"<w:fldSimple w:instr='REF HIDDENCODE'>{run('QX-4471')}</w:fldSimple>")
            + paragraph(f"<w:hyperlink w:anchor='a'>{run('Linked Torridon')}</w:hyperlink>")
            + paragraph(
                f"<w:smartTag w:element='place'>{run('Tagged Wexford')}<w:smartTag w:element='p'>{run(' Quay')}</w:smartTag></w:smartTag>"
            )
            + paragraph(f"<w:customXml w:element='p'>{run('Custom Isobel')}</w:customXml>")
            + f"<w:customXml w:element='p'>{paragraph(run('Blockcustom Quarrie'))}</w:customXml>"
            + paragraph(
                run("Tab") + "<w:r><w:tab/></w:r>" + run("stop") + "<w:r><w:br/></w:r>" + run("line")
            )
            + paragraph(run("co") + "<w:r><w:noBreakHyphen/></w:r>" + run("op"))
        ),
        (
            "Due 9 October",
            "Ref QX-4471",
            "Linked Torridon",
            "Tagged Wexford Quay",
            "Custom Isobel",
            "Blockcustom Quarrie",
        ),
        ("HIDDENCODE", "Tabstop", "stopline"),
    ),
    "maths": (
        docx_with(
            paragraph(
                run("Load: ") + "<m:oMath><m:r><m:t>F=</m:t></m:r><m:r><m:t>417</m:t></m:r></m:oMath>"
            )
            + paragraph("<m:oMathPara><m:oMath><m:r><m:t>q=928</m:t></m:r></m:oMath></m:oMathPara>")
        ),
        ("417", "928"),
        (),
    ),
    "boxes": (
        docx_with(paragraph(run("Beside box") + TEXT_BOX) + paragraph(VML_BOX)),
        ("Boxed 41 degrees", "Old box Wexcombe", "Plan of the mill", "Beside box"),
        (),
    ),
    "rare": (
        docx_with(
            paragraph(run("Port: ") + OLD_LIST)
            + paragraph("<w:r><w:pict><v:shape><v:textpath string='Wordart Mayo'/></v:shape></w:pict></w:r>")
            + "<w:altChunk r:id='odd0'/>",
            **{"aFChunk|chunk.htm": "<p>Chunk Dunmore</p>", "chartEx|charts/chartEx1.xml": CHART_2016},
        ),
        ("Port: Sligo", "Wordart Mayo", "Chunk Dunmore", "Opening Tuam 7741"),
        (),
    ),
    "nested": (
        docx_with(
            table(
                row(
                    paragraph(run("Outer")),
                    paragraph(run("Before"))
                    + table(row(paragraph(run("Inner Toluene")), paragraph(run("Kestrel Chemicals"))))
                    + paragraph(run("After")),
                )
            )
        ),
        ("Outer", "Inner Toluene", "Kestrel Chemicals"),
        (),
    ),
    "parts": (
        docx_with(
            paragraph(
                run("Body.")
                + "<w:r><w:footnoteReference w:id='2'/></w:r><w:r><w:endnoteReference w:id='2'/></w:r>"
            ),
            **{
                "comments|comments.xml": part(
                    "w:comments",
                    f"<w:comment w:id='0' w:author='Ida Holt'>{paragraph(run('Comment 12 milligrams'))}</w:comment>",
                ),
                "footnotes|footnotes.xml": part(
                    "w:footnotes",
                    f"<w:footnote w:id='2'>{paragraph(run('Footnote Harrow'))}</w:footnote>",
                ),
                "endnotes|endnotes.xml": part(
                    "w:endnotes", f"<w:endnote w:id='2'>{paragraph(run('Endnote Skye'))}</w:endnote>"
                ),
                "header|header7.xml": part("w:hdr", paragraph(run("Header QX-9")) + sdt(paragraph(run("Hdr control")))),
                "footer|footer7.xml": part("w:ftr", paragraph(run("Footer 30 Nov"))),
            },
        ),
        ("Comment 12 milligrams", "Footnote Harrow", "Endnote Skye", "Header QX-9", "Hdr control", "Footer 30 Nov"),
        (),
    ),
}  # fmt: skip


def template(made: bytes, kind: str) -> bytes:
    """Return the file with the content type of a template, or of a file with macros."""

    def change(name: str, data: bytes) -> bytes | None:
        return (
            data.replace(
                b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
                kind.encode(),
            )
            .replace(
                b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
                kind.encode(),
            )
            .replace(
                b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml", kind.encode()
            )
            if name == "[Content_Types].xml"
            else None
        )

    return changed(made, change)


def pptx_with(*shapes: str, notes: str = "", **parts: str) -> bytes:
    made = slides.Presentation()
    made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = "First"
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "Second"
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    return _with_parts(saved(made), "ppt/", "ppt/slides/slide2.xml", b"</p:spTree>", "".join(shapes), parts)


def shape(text: str, *, alt: str = "") -> str:
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr id='77' name='Shape' descr='{alt}'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>"
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def group(inner: str) -> str:
    return f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='78' name='G'/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{inner}</p:grpSp>"


def frame(inner: str) -> str:
    return (
        "<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id='79' name='F'/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>"
        f"<p:xfrm><a:off x='0' y='0'/><a:ext cx='9' cy='9'/></p:xfrm><a:graphic><a:graphicData uri='http://schemas.openxmlformats.org/drawingml/2006/chart'>{inner}</a:graphicData></a:graphic></p:graphicFrame>"
    )


def values(tag: str, *each: str, of: str = "strCache") -> str:
    points = "".join(f"<c:pt idx='{n}'><c:v>{value}</c:v></c:pt>" for n, value in enumerate(each))
    return f"<c:{tag}><c:{of.replace('Cache', 'Ref')}><c:f>Sheet1!A1</c:f><c:{of}>{points}</c:{of}></c:{of.replace('Cache', 'Ref')}></c:{tag}>"


CHART = part(
    "c:chartSpace",
    "<c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Berths per year</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>"
    + values("tx", "Fenwick")
    + values("cat", "2086", "2087")
    + values("val", "17", "4321", of="numCache")
    + "</c:ser></c:barChart></c:plotArea></c:chart>",
)
PPTX: dict[str, tuple[bytes, tuple[str, ...], tuple[str, ...]]] = {
    "groups": (
        pptx_with(group(shape("Grouped 9 October") + group(group(shape("Nested Marlow")))), notes="Notes Larkfield Mutual"),
        ("Grouped 9 October", "Nested Marlow", "Notes Larkfield Mutual"),
        (),
    ),
    "chart": (
        pptx_with(frame("<c:chart r:id='odd0'/>"), **{"chart|charts/chart9.xml": CHART}),
        ("Berths per year", "Fenwick", "2087", "4321"),
        (),
    ),
    "rare": (
        changed(
            pptx_with(
                "<p:sp><p:txBody><a:p><mc:AlternateContent><mc:Choice Requires='a14'><m:oMath><m:r><m:t>Z=3391</m:t></m:r></m:oMath>"
                "</mc:Choice></mc:AlternateContent></a:p></p:txBody></p:sp>",
                shape("x").replace("descr=''", "title='Title Birr'"),
                **{
                    "chartEx|charts/chartEx1.xml": CHART_2016,
                    "chart|charts/chart8.xml": part(
                        "c:chartSpace",
                        "<c:ser><c:cat><c:multiLvlStrRef><c:multiLvlStrCache><c:lvl><c:pt idx='0'><c:v>Spring</c:v></c:pt></c:lvl>"
                        "<c:lvl><c:pt idx='0'><c:v>2091</c:v></c:pt></c:lvl></c:multiLvlStrCache></c:multiLvlStrRef></c:cat>"
                        + values("val", "614", of="numCache") + "</c:ser>",
                    ),
                    "chart|charts/chart9.xml": part("c:chartSpace", "<c:ser/>"),
                },
            ),
            lambda *_: None,
            **{
                "ppt/charts/_rels/chart9.xml.rels": "<x Target='../embeddings/values.csv'/>",
                "ppt/embeddings/values.csv": "Depot,Lots\nKinvara,8123\n",
            },
        ),
        ("Z=3391", "Title Birr", "Opening Tuam 7741", "2091 Spring 614", "Kinvara | 8123"),
        (),
    ),
    "layout": (
        changed(
            pptx_with(),
            lambda name, data: data.replace(
                b"</p:spTree>",
                b"<p:sp><p:txBody><a:p><a:r><a:t>Stamp Lot 4417</a:t></a:r></a:p></p:txBody></p:sp></p:spTree>",
            )
            if name == "ppt/slideLayouts/slideLayout6.xml"
            else None,
        ),
        ("Stamp Lot 4417",),
        ("Click to edit",),
    ),
    "alt": (pptx_with(shape("Plain", alt="Alt Isobel bridge")), ("Plain", "Alt Isobel bridge"), ()),
    "grouped chart and table": (
        pptx_with(
            group(frame("<c:chart r:id='odd0'/>")),
            frame("<a:tbl><a:tblGrid><a:gridCol w='9'/></a:tblGrid><a:tr h='9'><a:tc><a:txBody><a:bodyPr/><a:p><a:r><a:t>Tabled Wick</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl>"),
            **{"chart|charts/chart9.xml": CHART},
        ),
        ("2087", "Tabled Wick"),
        (),
    ),
}  # fmt: skip


def xlsx_odd() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "Rates"
    sheet.append(["what", "when", "share", "sum", "price"])
    sheet.append(["Berth", date(2026, 10, 9), 0.175, "=40+2", 1234.5])
    sheet["B2"].number_format = "dd/mm/yyyy"
    sheet["C2"].number_format = "0.0%"
    sheet["E2"].number_format = '#,##0.00 "EUR"'
    sheet["A2"].comment = Comment("Comment Wexham", "Ida")
    hidden = book.create_sheet("Second")
    hidden.append(["Tenant Oriel"])
    return saved(book)


def xlsx_rare() -> bytes:
    """Return a workbook with a wrong dimension, as some programs write, an array formula, headers and a chart sheet."""
    book = Workbook()
    sheet = book.active
    sheet.append(["what"])
    sheet.append(["Berth", ArrayFormula("B2:B2", "=SUM(A1:A3*731)")])
    sheet.oddHeader.center.text = "Head Lusk"
    drawn = BarChart()
    drawn.title = "Chartsheet Naul"
    drawn.add_data(Reference(sheet, min_col=1, min_row=1))
    book.create_chartsheet("Plot").add_chart(drawn)
    return changed(
        saved(book), lambda _, data: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', data)
    )


XLSX_READ = ("Berth", "09/10/2026", "17.5%", "=40+2", "1,234.50 EUR", "Comment Wexham", "Tenant Oriel")


def odf(kind: str, body: str, **parts: str) -> bytes:
    content = part(
        "office:document-content", f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    )
    mime = {"text": "text", "spreadsheet": "spreadsheet", "presentation": "presentation"}[kind]
    return archive(**{"mimetype": f"application/vnd.oasis.opendocument.{mime}", "content.xml": content, **parts})  # fmt: skip


ODT = odf(
    "text",
    "<office:forms><form:text xmlns:form='urn:oasis:names:tc:opendocument:xmlns:form:1.0' form:current-value='Form Moyvane'/></office:forms>"
    "<text:tracked-changes><text:changed-region text:id='c1'><text:deletion><office:change-info><dc:creator>Ida</dc:creator></office:change-info>"
    "<text:p>Deleted Goneby</text:p></text:deletion></text:changed-region></text:tracked-changes>"
    "<text:h text:outline-level='1'>Depots</text:h>"
    "<text:p>Keeper<text:tab/>Rhiannon<text:s text:c='3'/>Vaughan<text:line-break/>Shed 12<text:tab/>Pwllheli</text:p>"
    "<text:p>Now <text:change-start text:change-id='c2'/>inserted Brill<text:change-end text:change-id='c2'/></text:p>"
    "<text:p>Note<text:note text:note-class='footnote'><text:note-citation>1</text:note-citation><text:note-body><text:p>Footnote Kell</text:p></text:note-body></text:note></text:p>"
    "<text:p>Said<office:annotation><dc:creator>Ida</dc:creator><text:p>Annotation Mull</text:p></office:annotation></text:p>"
    "<text:list><text:list-item><text:p>Item Ennis</text:p><text:list><text:list-item><text:p>Deeper Tralee</text:p></text:list-item></text:list></text:list-item></text:list>"
    "<text:p><draw:frame><draw:text-box><text:p>Box Sligo</text:p></draw:text-box><svg:desc>Alt Cavan</svg:desc></draw:frame></text:p>"
    "<text:section><text:p>Section Louth</text:p></text:section>"
    "<table:table table:name='T'><table:table-row><table:table-cell><text:p>North tank</text:p></table:table-cell>"
    "<table:table-cell><text:p>8400</text:p></table:table-cell></table:table-row></table:table>",
    **{"styles.xml": part("office:document-styles", "<office:x><text:p>Header Antrim</text:p></office:x>")},
)
ODS = odf(
    "spreadsheet",
    "<table:table table:name='Rates'><table:table-row><table:table-cell office:value-type='string'><text:p>What</text:p></table:table-cell>"
    "<table:table-cell office:value-type='percentage' office:value='0.175'><text:p>17.5%</text:p></table:table-cell></table:table-row>"
    "<table:table-row table:number-rows-repeated='1000000'><table:table-cell table:number-columns-repeated='1000'/></table:table-row>"
    "<table:table-row><table:table-cell office:value-type='date' office:date-value='2026-10-09'><text:p>09/10/26</text:p>"
    "<office:annotation><text:p>Comment Offaly</text:p></office:annotation></table:table-cell>"
    "<table:table-cell table:formula='of:=[.A1]+2' office:value-type='float'/></table:table-row></table:table>",
)
ODS_RARE = odf(
    "spreadsheet",
    "<table:table><table:shapes><draw:frame><draw:text-box><text:p>Sheet box Cahir</text:p></draw:text-box></draw:frame></table:shapes>"
    "<table:table-row><table:table-cell office:value='6612'/><table:table-cell office:date-value='2026-10-09'/></table:table-row></table:table>",
    **{
        "styles.xml": part("office:document-styles", "<text:p>Head Tralee</text:p>"),
        "Object 1/content.xml": part("office:document-content", "<text:p>Chart Gort</text:p>"),
    },
)
