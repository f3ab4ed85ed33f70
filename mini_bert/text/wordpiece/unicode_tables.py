"""How BERT's tokenizer classes characters: written by tests/reference/make_unicode_tables.py.

The reference is tokenizers 0.23.3. Its tables follow an older Unicode than Python's, and are
kept here so that the same text gives the same ids under every version of Python.
"""

from ..characters import CharacterSet

# control, format and private-use characters, which cleaning deletes
REMOVED = CharacterSet(
    "0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 180e 200b-200f 202a-202e 2060-2064 2066-206f e000-f8ff "
    "feff fff9-fffb fffd 110bd 1bca0-1bca3 1d173-1d17a e0001 e0020-e007f f0000-ffffd 100000-10fffd "
)

# what becomes a space
SPACES = CharacterSet(
    "9-a d 20 a0 1680 2000-200a 2028-2029 202f 205f 3000 "
)

# non-spacing marks, which stripping accents deletes
MARKS = CharacterSet(
    "300-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 6ea-6ed "
    "711 730-74a 7a6-7b0 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8e3-902 93a 93c 941-948 94d "
    "951-957 962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 a01-a02 a3c a41-a42 a47-a48 a4b-a4d a51 a70-a71 a75 "
    "a81-a82 abc ac1-ac5 ac7-ac8 acd ae2-ae3 b01 b3c b3f b41-b44 b4d b56 b62-b63 b82 bc0 bcd c00 c3e-c40 "
    "c46-c48 c4a-c4d c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3 d01 d41-d44 d4d d62-d63 dca dd2-dd4 "
    "dd6 e31 e34-e3a e47-e4e eb1 eb4-eb9 ebb-ebc ec8-ecd f18-f19 f35 f37 f39 f71-f7e f80-f84 f86-f87 "
    "f8d-f97 f99-fbc fc6 102d-1030 1032-1037 1039-103a 103d-103e 1058-1059 105e-1060 1071-1074 1082 "
    "1085-1086 108d 109d 135d-135f 1712-1714 1732-1734 1752-1753 1772-1773 17b4-17b5 17b7-17bd 17c6 "
    "17c9-17d3 17dd 180b-180d 18a9 1920-1922 1927-1928 1932 1939-193b 1a17-1a18 1a1b 1a56 1a58-1a5e 1a60 "
    "1a62 1a65-1a6c 1a73-1a7c 1a7f 1ab0-1abd 1b00-1b03 1b34 1b36-1b3a 1b3c 1b42 1b6b-1b73 1b80-1b81 "
    "1ba2-1ba5 1ba8-1ba9 1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1cd0-1cd2 1cd4-1ce0 "
    "1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1df5 1dfc-1dff 20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff "
    "302a-302d 3099-309a a66f a674-a67d a69e-a69f a6f0-a6f1 a802 a806 a80b a825-a826 a8c4 a8e0-a8f1 "
    "a926-a92d a947-a951 a980-a982 a9b3 a9b6-a9b9 a9bc a9e5 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa7c "
    "aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1 aaec-aaed aaf6 abe5 abe8 abed fb1e fe00-fe0f fe20-fe2f 101fd "
    "102e0 10376-1037a 10a01-10a03 10a05-10a06 10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 11001 "
    "11038-11046 1107f-11081 110b3-110b6 110b9-110ba 11100-11102 11127-1112b 1112d-11134 11173 "
    "11180-11181 111b6-111be 111ca-111cc 1122f-11231 11234 11236-11237 112df 112e3-112ea 11300-11301 "
    "1133c 11340 11366-1136c 11370-11374 114b3-114b8 114ba 114bf-114c0 114c2-114c3 115b2-115b5 "
    "115bc-115bd 115bf-115c0 115dc-115dd 11633-1163a 1163d 1163f-11640 116ab 116ad 116b0-116b5 116b7 "
    "1171d-1171f 11722-11725 11727-1172b 16af0-16af4 16b30-16b36 16f8f-16f92 1bc9d-1bc9e 1d167-1d169 "
    "1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36 1da3b-1da6c 1da75 1da84 1da9b-1da9f "
    "1daa1-1daaf 1e8d0-1e8d6 e0100-e01ef "
)

# what has a canonical decomposition, the one that unicodedata gives
DECOMPOSED = CharacterSet(
    "c0-c5 c7-cf d1-d6 d9-dd e0-e5 e7-ef f1-f6 f9-fd ff-10f 112-125 128-130 134-137 139-13e 143-148 "
    "14c-151 154-165 168-17e 1a0-1a1 1af-1b0 1cd-1dc 1de-1e3 1e6-1f0 1f4-1f5 1f8-21b 21e-21f 226-233 "
    "340-341 343-344 374 37e 385-38a 38c 38e-390 3aa-3b0 3ca-3ce 3d3-3d4 400-401 403 407 40c-40e 419 439 "
    "450-451 453 457 45c-45e 476-477 4c1-4c2 4d0-4d3 4d6-4d7 4da-4df 4e2-4e7 4ea-4f5 4f8-4f9 622-626 6c0 "
    "6c2 6d3 929 931 934 958-95f 9cb-9cc 9dc-9dd 9df a33 a36 a59-a5b a5e b48 b4b-b4c b5c-b5d b94 bca-bcc "
    "c48 cc0 cc7-cc8 cca-ccb d4a-d4c dda ddc-dde f43 f4d f52 f57 f5c f69 f73 f75-f76 f78 f81 f93 f9d fa2 "
    "fa7 fac fb9 1026 1b06 1b08 1b0a 1b0c 1b0e 1b12 1b3b 1b3d 1b40-1b41 1b43 1e00-1e99 1e9b 1ea0-1ef9 "
    "1f00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe "
    "1fc1-1fc4 1fc6-1fd3 1fd6-1fdb 1fdd-1fef 1ff2-1ff4 1ff6-1ffd 2000-2001 2126 212a-212b 219a-219b 21ae "
    "21cd-21cf 2204 2209 220c 2224 2226 2241 2244 2247 2249 2260 2262 226d-2271 2274-2275 2278-2279 "
    "2280-2281 2284-2285 2288-2289 22ac-22af 22e0-22e3 22ea-22ed 2329-232a 2adc 304c 304e 3050 3052 3054 "
    "3056 3058 305a 305c 305e 3060 3062 3065 3067 3069 3070-3071 3073-3074 3076-3077 3079-307a 307c-307d "
    "3094 309e 30ac 30ae 30b0 30b2 30b4 30b6 30b8 30ba 30bc 30be 30c0 30c2 30c5 30c7 30c9 30d0-30d1 "
    "30d3-30d4 30d6-30d7 30d9-30da 30dc-30dd 30f4 30f7-30fa 30fe ac00-d7a3 f900-fa0d fa10 fa12 fa15-fa1e "
    "fa20 fa22 fa25-fa26 fa2a-fa6d fa70-fad9 fb1d fb1f fb2a-fb36 fb38-fb3c fb3e fb40-fb41 fb43-fb44 "
    "fb46-fb4e 1109a 1109c 110ab 1112e-1112f 1134b-1134c 114bb-114bc 114be 115ba-115bb 1d15e-1d164 "
    "1d1bb-1d1c0 2f800-2fa1d "
)

# what has a combining class, the one that unicodedata gives, and is sorted by it
COMBINING = CharacterSet(
    "300-33f 342 345-34e 350-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc "
    "6df-6e4 6e7-6e8 6ea-6ed 711 730-74a 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8d4-8e1 8e3-8ff "
    "93c 94d 951-954 9bc 9cd a3c a4d abc acd b3c b4d bcd c4d c55-c56 cbc ccd d4d dca e38-e3a e48-e4b "
    "eb8-eb9 ec8-ecb f18-f19 f35 f37 f39 f71-f72 f74 f7a-f7d f80 f82-f84 f86-f87 fc6 1037 1039-103a 108d "
    "135d-135f 1714 1734 17d2 17dd 18a9 1939-193b 1a17-1a18 1a60 1a75-1a7c 1a7f 1ab0-1abd 1b34 1b44 "
    "1b6b-1b73 1baa-1bab 1be6 1bf2-1bf3 1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1df5 "
    "1dfb-1dff 20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302f 3099-309a a66f a674-a67d "
    "a69e-a69f a6f0-a6f1 a806 a8c4 a8e0-a8f1 a92b-a92d a953 a9b3 a9c0 aab0 aab2-aab4 aab7-aab8 aabe-aabf "
    "aac1 aaf6 abed fb1e fe20-fe2f 101fd 102e0 10376-1037a 10a0d 10a0f 10a38-10a3a 10a3f 10ae5-10ae6 "
    "11046 1107f 110b9-110ba 11100-11102 11133-11134 11173 111c0 111ca 11235-11236 112e9-112ea 1133c "
    "1134d 11366-1136c 11370-11374 11442 11446 114c2-114c3 115bf-115c0 1163f 116b6-116b7 1172b 11c3f "
    "16af0-16af4 16b30-16b36 1bc9e 1d165-1d169 1d16d-1d172 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad "
    "1d242-1d244 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e8d0-1e8d6 1e944-1e94a "
)

# what has a combining class but is not deleted with the accents, alone or as a part
STANDING = CharacterSet(
    "8d4-8e1 1b44 1baa 1bf2-1bf3 1dfb 302e-302f a953 a9c0 111c0 11235 1134d 11442 11446 116b6 11c3f "
    "1d15e-1d166 1d16d-1d172 1d1bb-1d1c0 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a "
    "1e944-1e94a "
)

# ideographs, each a word of its own
CJK = CharacterSet(
    "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f "
)

# punctuation, each a word of its own
PUNCTUATION = CharacterSet(
    "21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 609-60a "
    "60c-60d 61b 61e-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f e5a-e5b f04-f12 "
    "f14 f3a-f3d f85 fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166d-166e 169b-169c 16eb-16ed "
    "1735-1736 17d4-17d6 17d8-17da 1800-180a 1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad 1b5a-1b60 1bfc-1bff "
    "1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027 2030-2043 2045-2051 2053-205e 207d-207e 208d-208e "
    "2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef 2983-2998 29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff "
    "2d70 2e00-2e2e 2e30-2e42 3001-3003 3008-3011 3014-301f 3030 303d 30a0 30fb a4fe-a4ff a60d-a60f a673 "
    "a67e a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f a9c1-a9cd a9de-a9df aa5c-aa5f "
    "aade-aadf aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 fe68 fe6a-fe6b ff01-ff03 "
    "ff05-ff0a ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 10100-10102 1039f 103d0 "
    "1056f 10857 1091f 1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c 11047-1104d "
    "110bb-110bc 110be-110c1 11140-11143 11174-11175 111c5-111c9 111cd 111db 111dd-111df 11238-1123d "
    "112a9 114c6 115c1-115d7 11641-11643 1173c-1173e 12470-12474 16a6e-16a6f 16af5 16b37-16b3b 16b44 "
    "1bc9f 1da87-1da8b "
)

# small letters of capitals that Python 3.11 does not know yet
LOWER = {
    0x1c89: '\u1c8a',
    0xa7cb: '\u0264',
    0xa7cc: '\ua7cd',
    0xa7ce: '\ua7cf',
    0xa7d2: '\ua7d3',
    0xa7d4: '\ua7d5',
    0xa7da: '\ua7db',
    0xa7dc: '\u019b',
    0x10d50: '\U00010d70',
    0x10d51: '\U00010d71',
    0x10d52: '\U00010d72',
    0x10d53: '\U00010d73',
    0x10d54: '\U00010d74',
    0x10d55: '\U00010d75',
    0x10d56: '\U00010d76',
    0x10d57: '\U00010d77',
    0x10d58: '\U00010d78',
    0x10d59: '\U00010d79',
    0x10d5a: '\U00010d7a',
    0x10d5b: '\U00010d7b',
    0x10d5c: '\U00010d7c',
    0x10d5d: '\U00010d7d',
    0x10d5e: '\U00010d7e',
    0x10d5f: '\U00010d7f',
    0x10d60: '\U00010d80',
    0x10d61: '\U00010d81',
    0x10d62: '\U00010d82',
    0x10d63: '\U00010d83',
    0x10d64: '\U00010d84',
    0x10d65: '\U00010d85',
    0x16ea0: '\U00016ebb',
    0x16ea1: '\U00016ebc',
    0x16ea2: '\U00016ebd',
    0x16ea3: '\U00016ebe',
    0x16ea4: '\U00016ebf',
    0x16ea5: '\U00016ec0',
    0x16ea6: '\U00016ec1',
    0x16ea7: '\U00016ec2',
    0x16ea8: '\U00016ec3',
    0x16ea9: '\U00016ec4',
    0x16eaa: '\U00016ec5',
    0x16eab: '\U00016ec6',
    0x16eac: '\U00016ec7',
    0x16ead: '\U00016ec8',
    0x16eae: '\U00016ec9',
    0x16eaf: '\U00016eca',
    0x16eb0: '\U00016ecb',
    0x16eb1: '\U00016ecc',
    0x16eb2: '\U00016ecd',
    0x16eb3: '\U00016ece',
    0x16eb4: '\U00016ecf',
    0x16eb5: '\U00016ed0',
    0x16eb6: '\U00016ed1',
    0x16eb7: '\U00016ed2',
    0x16eb8: '\U00016ed3',
}
