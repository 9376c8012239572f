"""Numbers of identity behind their labels, whether or not their check digits are right, and talk with such labels.

Written before the rules for them and split by `half` before any trial: the rules were written with one half in view,
and the other was measured afterwards. All numbers are made up.
"""

import zlib

ASKED = """
My SSN is 078-05-1120
My SSN is 900-12-3456
SSN: 000-12-3456
my social security number is 666 12 3456
Social Security No. 123456780
SSN 987-65-4320, keep it for the form
Her SSN = 000-00-1234
078-05-1120 is my SSN
My wife's social security number: 219-09-9999
SSN (for payroll): 900-45-6789
| SSN | 078-05-1120 |
Meine Sozialversicherungsnummer ist 12 345678 Z 999
meine US-Sozialversicherungsnummer lautet 078-05-1120
Steuer-ID: 12 345 678 901
Meine Steueridentifikationsnummer ist 11111111111
Steuernummer: 12/345/67890
Mein Führerschein: B072RRE2I55
Führerscheinnummer B072RRE2I55
Die Nummer meines Personalausweises lautet L01X00T47
Personalausweisnummer: L01X00T471
Mi número de la seguridad social es 28 12345678 40
mi número de seguro social es 078-05-1120
Mi DNI es 12345678A
DNI: 99999999-R
mi NIE es X9999999T
carnet de conducir número 12345678-Z
Mi licencia de conducir es 12345678
mi CURP es AAAA990101HDFXXX99
Mon numéro de sécurité sociale est 1 85 05 78 006 084 99
numéro de sécu : 285057800608499
Mon numéro fiscal est 1234567890123
numéro de permis de conduire : 991234567890
mon permis de conduire est le 12AB34567
carte d'identité n° 990175101234
Meu CPF é 111.111.111-12
CPF: 12345678900
o meu NIF é 123456780
minha CNH é 01234567890
RG: 12.345.678-9
carta de condução n.º L-1234567
o meu número de segurança social é 12345678901
Il mio codice fiscale è RSSMRA85T10A562X
codice fiscale: RCCMNL83S18D969X
numero di patente: MI1234567A
la mia carta d'identità è CA12345AA
partita iva personale no, ma il numero di previdenza sociale è 078-05-1120
Mijn BSN is 123456789
burgerservicenummer: 111222334
rijbewijsnummer 5123456789
mijn rijbewijs: 5123456789
Mijn identiteitskaart heeft nummer 591-1234567-89
Mój PESEL to 12345678901
PESEL: 44051401358
numer dowodu osobistego: ABC123456
prawo jazdy nr 12345/06/1234
NIP: 123-456-78-90
TC kimlik numaram 12345678901
T.C. kimlik no: 11111111111
ehliyet numaram 123456
sürücü belgesi no: 654321789
vergi numaram 1234567890
sosyal güvenlik numaram 078-05-1120
Мой СНИЛС 123-456-789 00
ИНН: 123456789012
мой ИНН 500100732258
водительское удостоверение 99 12 345678
номер водительского удостоверения: 77АА123456
номер социального страхования: 078-05-1120
رقم الهوية الوطنية هو 1012345678
رقم الهوية: 2123456789
رقم الضمان الاجتماعي الخاص بي هو 078-05-1120
رخصة القيادة رقم 1234567890
الرقم القومي: 29901011234567
मेरा आधार नंबर 1234 5678 9012 है
आधार: 234123412347
Aadhaar 2341 2341 2347
my Aadhaar number is 1111 2222 3333
aadhar no. 0000 1111 2222
मेरा पैन ABCDE1234F है
मेरा ड्राइविंग लाइसेंस नंबर MH12 20110012345 है
सामाजिक सुरक्षा नंबर 078-05-1120
मेरा पहचान पत्र नंबर ABC1234567 है
我的身份证号是110101199003071234
身份证：360426199101010070
驾驶证号：110101199003071234
我的社会安全号码是078-05-1120
纳税人识别号：91310000123456789X
マイナンバーは123456789012です
私のマイナンバー: 1111 2222 3333
運転免許証番号は123456789012です
社会保障番号は078-05-1120です
個人番号：234567890123
제 주민등록번호는 900101-1234567입니다
주민번호 971013-9019903
운전면허번호: 11-12-345678-90
사회보장번호는 078-05-1120입니다
CCCD của tôi là 001099012345
số căn cước: 079123456789
giấy phép lái xe số 790123456789
mã số thuế cá nhân: 8123456789
số an sinh xã hội của tôi là 078-05-1120
My EIN is 12-3456789
EIN: 00-1234567
employer identification number 123456789
Our federal tax ID is 98-7654321
My driver's license number is D1234567
driver's license: S123-4567-8901
driving licence MORGA657054SM9IJ
DL number: N/A, so use license no. instead; my driving license is 123 456 789
CA driver license D1234567
My SIN is 046 454 287
SIN: 123-456-789
my social insurance number is 999 999 998
numéro d'assurance sociale : 123 456 789
my NHS number is 943 476 5870
NI number: QQ 12 34 56 C
UTR 1234567890
national id: 1234567890123
my national ID number is 784-1990-1234567-1
ITIN 912-34-5678
my ITIN is 900-70-0001
tax identification number: 123-45-6789
TFN: 123 456 782
my tax file number is 123456789
CPR-nummer: 010190-1234
mit CPR-nummer er 3112991234
personnummer: 19900101-1234
henkilötunnus 010190-123A
fødselsnummer 01019012345
CNP: 1900101123456
AHV-Nummer 756.1234.5678.90
Meine AHV-Nummer ist 756.9999.9999.99
rijksregisternummer 85.07.30-033.99
""".strip().split("\n")

TALK = """
My SSN office opens at 9 and closes at 17
The SSN form has 9 digits and 3 parts
We store no SSN; ticket 123456789 tracks that
Call social security at 800-772-1213
Social security: 1-800-772-1213 is their phone
Social security paid 123,456,789 dollars in 2024
The social security office, 1234 Main Street, 62704 Springfield
Room 078-05 has 1120 chairs
order 078-05-11201 was shipped
Part number 900-12-34567
invoice 12-3456789 was paid
Das ist ein 12-3456 Modell
Es war ein 2024er Jahrgang mit 123456 Flaschen
wir haben ein 3-4567 Teil bestellt
Für das Jahr 2024 haben wir ein Budget von 123456789 Euro
Die Steuer-ID hat 11 Ziffern
Steuernummer kommt bis 12.03.2025
Mein Führerschein ist 12 Jahre alt
Führerschein kostet 3500 Euro
Der Führerschein gilt bis 19.01.2033
Führerschein: 2019-05-01 ausgestellt
Ich habe die Sozialversicherungsnummer am 01.02.2024 beantragt
Die Sozialversicherung hat 123456 Mitglieder
viajo sin 123456789 problemas
sin: 3 de cada 10
estoy sin trabajo desde 2023-04-01
Mi DNI caduca el 12/05/2027
El DNI tiene 8 números y 1 letra
carnet de conducir desde 2005
La licencia de conducir cuesta 1200 pesos
La seguridad social atiende de 9 a 14, teléfono 901166565
Mon permis de conduire date de 1998
Permis de conduire obtenu le 12/06/2005
La sécurité sociale rembourse 70 % de 25 euros
sécurité sociale : 3646 de 8h30 à 17h30
Le numéro fiscal compte 13 chiffres
Meu CPF foi emitido em 2010
A CNH vence em 10/2030
CNH: renovar até 2026-12-31
RG tem 9 dígitos
O NIF pede-se nas finanças, tel. 217206707
La patente scade il 12/03/2029
patente: 20 punti
Il codice fiscale ha 16 caratteri
La carta d'identità costa 22 euro
Mijn rijbewijs verloopt op 12-03-2028
rijbewijs: 10 jaar geldig
BSN heeft 9 cijfers
Identiteitskaart kost 75 euro in 2025
PESEL ma 11 cyfr
prawo jazdy od 2003 roku
Prawo jazdy kosztuje 3500 zł
dowód osobisty ważny do 12.04.2031
NIP firmy jest w umowie 2024/123
kimlik kartı 2 haftada geldi
ehliyet sınavı 2025-05-12
Ehliyetim 2031 yılına kadar geçerli
vergi dairesi saat 9 ile 17 arası açık
ИНН состоит из 12 цифр
СНИЛС получили в 2019 году
водительские права с 2008 года
Права: категория B, стаж 12 лет
социальное страхование: 8 800 302 75 49
رقم الهوية مكون من 10 أرقام
رخصة القيادة تنتهي في 2028
الضمان الاجتماعي يفتح الساعة 8
आधार केंद्र सुबह 9 बजे खुलता है
आधार में 12 अंक होते हैं
ड्राइविंग लाइसेंस 2030 तक मान्य है
पैन कार्ड 15 दिन में आता है
इस योजना का आधार 123456 परिवार हैं
身份证有18位数字
驾照有效期到2030年
身份证办理需要20个工作日
社保每月扣1200元
税号在发票第2页
マイナンバーは12桁です
免許証は2028年まで有効
社会保障費は123456億円です
個人番号カードの申請は3週間かかる
주민등록번호는 13자리입니다
운전면허는 2018년에 땄어요
운전면허 시험은 2026-03-04
CCCD có 12 chữ số
giấy phép lái xe hạng B2 năm 2019
mã số thuế gồm 10 chữ số
EIN paperwork takes 4 weeks
The EIN letter is dated 2024-05-01
an ein of mine was lost in 2019
Driver's license renewal costs 45 dollars
My driver's license expires 2027-05-01
driving licence: 3 points, since 2019
Driving license number plate holder 12 by 30 cm
driver's license office 555-123-4567
I got my driving licence in 2004 at 18
The license is MIT, version 2.0.123456
license: Apache-2.0
License number of seats: 25000
It is a sin 3 times over
sin(30) = 0.5 and sin: 0.8660254
the seven deadly sins, 1234567 copies sold
Wages of sin: 12345678 dollars
SIN renewal is on 2025-09-01
Aadhaar has 12 digits
Aadhaar was introduced in 2009 for 1,300,000,000 people
Aadhaar centre: 011-23456789
NHS number lookup took 10 minutes
The NHS number has 10 digits, since 1996
call the NHS on 111 or 0300 330 9434
UTR comes by post within 15 days
national ID cards cost 30 dollars
tax id forms: W-9 and 1099
tax number 3 on the list
The tax return was filed on 2025-04-15 for 123456 dollars
Personal number of books: 123
ITIN applications take 11 weeks
my TFN application from 12/03/2024
CPR training for 1234567890 seconds
CPR: 30 compressions, 2 breaths
personnummer bytte vi 2019
id number 4 in the queue
order id number: 1234567890123
Tracking number 123456789012
ISBN 978-3-16-148410-0
phone: 219-099-9999
population of 219 09 9999 is a typo
customer number 12345678901
The meeting id is 123 456 789
Zoom: 987 654 3210
version 111.111.111-12
My employee number is 123456789
Account for the identity team: 1234567890 users
""".strip().split("\n")


def half(lines: list[str], *, held_back: bool) -> list[str]:
    """Return the lines of one half, by the checksum of each."""
    return [line for line in lines if (zlib.crc32(line.encode()) % 2 == 1) == held_back]
