"""Lines that an independent tester wrote against the filter after its corpus; all made up.

``VARIANTS`` were added by the tester before the fixes; ``HELD_BACK`` of them was not seen while these were made.
"""

# Always refused.
CREDENTIALS = [
    # a name in bold, in italics or in a tag, its colon inside
    "**Password:** hunter2", "- **Password:** x9kP", "*API key:* a8f3kd93kslq02md", "__Password:__ hunter2",
    "**Пароль:** hunter2", "<b>Password:</b> hunter2", "<td>password</td><td>hunter2</td>", "password:<br>hunter2",
    # arrows, dashes, brackets
    "password -> hunter2", "password → hunter2", "password — hunter2", "пароль — hunter2", "password (wifi): hunter2",
    # the value first
    "hunter2 is my password", "use hunter2 as password",
    # code and configuration
    "password=b'Tiger.Lily7'", "password = f'hunter2'", "password=r'hunter2'",
    '{"name":"password","value":"hunter2"}', "- name: DB_PASSWORD\n  value: hunter2", "WIFI:T:WPA;S:home;P:hunter2;;",
    "https://maps.example.com/api?key=q8Zr2LmX9vT4bN7cK1wD", "admin:admin123",
    # words
    "clave: hunter2", "contrasenya: hunter2", "WLAN-Schlüssel: hunter2", "パス：hunter2", "mật khẩu wifi là hunter2",
    "mot de passe Gmail est hunter2",
]  # fmt: skip
# Refused by automatic writes.
PERSONAL = [
    "Die PIN meiner Karte lautet 4711", "el PIN de mi tarjeta es el 4711", "le code PIN de ma carte est le 4711",
    "il PIN del bancomat è il 4711", "4711 is my PIN", "キャッシュカードの暗証番号は4711です",
    "الرقم السري لبطاقتي هو 4711", "mã PIN thẻ của tôi là 4711", "ПИН-код карты — 4711", "my PIN is 4 7 1 1",
    "my PIN's 4711",
    "4111 1111\n1111 1111", "DE89 3704 0044\n0532 0130 00", "4111/1111/1111/1111", "4111_1111_1111_1111",
    "4111·1111·1111·1111", "41 11 11 11 11 11 11 11", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    "recovery codes: a1b2-c3d4 e5f6-g7h8", "account number 12345678, sort code 12-34-56",
    "Konto 1234567890, BLZ 10010010",
]  # fmt: skip
# Accepted.
TALK = [
    "das Kennwort der Gruppe ist 'Zusammenhalt'", "IMEI 490154203237518 of the old phone",
    "pin code of Mumbai is 400001", "my pincode is 110001 (Delhi)", "the area PIN is 110001",
]  # fmt: skip

# Accepted too, though the fixes might have refused them.
MORE_TALK = [
    "Settings -> Password -> Change", "I lost my password — sorry!", "password — sha256 is no hash for it",
    "**Password:** ask Ann for it", "password (str): Something you know.", "the password manager is 1Password",
    "oauth2 is my password replacement", "1Password is my password manager", "we use bcrypt2 as password hash",
    "image: postgres:16-alpine", "root:x:0:0:root:/root", "La clave: paciencia", "la clave es paciencia",
    "パスタ: 200g", "<td>password</td><td>required</td>", "WIFI:T:nopass;S:home;;", 'password=f"{user}-{number}"',
    "https://example.com/?key=the-quick-brown-fox-jumps-over",
    "2021\n2022\n2023\n2024", "PIN: 4711-0815-22", "4711 is my PIN's first half no more",
    "my PIN collection has 4711 badges", "4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19",
    "my account number 12345678 at the library", "the PIN of the card is 4 digits long", "暗証番号は4711円です",
    "0 1 1 2 3 5 8", "01.02.2024 03.04.2024 05.06.2024", "I pinned 4711 is my lucky number", "PIN layout 1 2 3 4",
    "in 1984 is my pinnacle", "4711 is not my PIN", "Konto eröffnet 2024, BLZ unbekannt",
]  # fmt: skip

# Written before the fixes, kind beside text: "credential", "personal" or "talk". Every second one is held back.
VARIANTS = [
    ("credential", "**Passwort:** Kaktus-2201"),
    ("credential", "* ***Password:*** Blue$Sky19"),
    ("credential", "<strong>API key</strong>: q8Zr2LmX9vT4bN7c"),
    ("credential", "<th>Password</th><td>Orchid_55</td>"),
    ("credential", "password => Harbor77light"),
    ("credential", "Passwort – Wolke7frei"),
    ("credential", "Passwort (Router): Kaktus-2201"),
    ("credential", "Blue$Sky19 ist mein Passwort"),
    ("credential", "{'key': 'API_TOKEN', 'value': 'kd83jf92ls01mx'}"),
    ("credential", "WIFI:S:Café;T:WPA;P:Lantern22;H:false;;"),
    ("credential", "root:t00r99"),
    ("credential", "Netzwerkschlüssel: Lantern22Haus"),
    ("personal", "a PIN do meu cartão é a 4711"),
    ("personal", "De pincode van mijn pas is 4711"),
    ("personal", "4711 ist meine PIN"),
    ("personal", "PIN → 4711"),
    ("personal", "my bank card's PIN: 4-7-1-1"),
    ("personal", "银行卡的密码是 471100"),
    ("personal", "4111\n1111\n1111\n1111"),
    ("personal", "GB82\nWEST 1234 5698\n7654 32"),
    ("personal", "sort code 20-00-00 account 55779911"),
    ("personal", "Kontonummer 532013000, Bankleitzahl 37040044"),
    ("talk", "the password — as always — is a secret"),
    ("talk", "Bold is my password habit"),
    ("talk", "**Password:** see the vault"),
    ("talk", "password (required): string"),
    ("talk", "the PIN code for Bangalore is 560001"),
    ("talk", "12 is my lucky number, PIN or no PIN"),
    ("talk", "admin:adminpage and user:home"),
    ("talk", "https://example.com/search?key=the-quick-brown-fox-jumps"),
]  # fmt: skip
TUNED_ON, HELD_BACK = VARIANTS[::2], VARIANTS[1::2]
