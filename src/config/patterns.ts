/** Users' regular expressions: RE2 syntax (Envoy's), checked here and never run by this process on traffic. */
import { agentProgramSize } from './program-bounds.ts'
import { programSize } from './program-size.ts'
import type { Report } from './shape.ts'

/** Classes of Unicode by their general category. */
const category = /^(Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)$/
/** Scripts that every supported release of Envoy knows: those of Unicode 15.0, as `\p{...}` names them. */
const scripts: ReadonlySet<string> = new Set(
  `Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese
Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic
Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek
Gujarati Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi
Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha
Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek
Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue
Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian
Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang
Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog
Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho
Warang_Citi Yezidi Yi Zanabazar_Square`.split(/\s/),
)

/** What keeps text from being a regular expression that every supported release of Envoy takes, or undefined. */
function re2Fault(pattern: string): string | undefined {
  if (pattern === '') return 'an empty pattern, which proxies refuse'
  try {
    const size = programSize(pattern)
    if (size > agentProgramSize) return `a pattern of program size ${size} or more: proxies take ${agentProgramSize}`
  } catch (error) {
    return `not a valid RE2 pattern: ${(error as Error).message}`
  }
  const unknown = [...escapesOf(pattern)].find(isUnknown)
  return unknown === undefined ? undefined : `not a valid RE2 pattern: some releases of Envoy do not know \\${unknown}`
}

/** What stands behind backslashes: the letter, and what it takes in braces. Quoted text (`\Q...\E`) has none. */
function* escapesOf(pattern: string): Generator<string> {
  for (const [, escaped = ''] of pattern.replace(/\\Q.*?(\\E|$)/gs, '').matchAll(/\\([pPx]\{[^}]*\}|.)/gs)) yield escaped
}

/** Envoy 1.40 reads characters as single bytes and knows none beyond them; classes are those of the releases' own Unicode. */
function isUnknown(escaped: string): boolean {
  const [, kind, given] = /^([pPx])\{(.*)\}$/s.exec(escaped) ?? []
  if (kind === undefined || given === undefined) return false
  if (kind === 'x') return Number.parseInt(given, 16) > 0xff
  const name = given.replace(/^\^/, '')
  return !category.test(name) && !scripts.has(name)
}

/** Checks the regular expressions of one file, each text once, as long as compiling them takes no longer than is allowed. */
export class PatternChecks {
  readonly #mostMs: number
  readonly #now: () => number
  readonly #known = new Map<string, string | undefined>()
  #spentMs = 0

  /** `now` gives milliseconds; without arguments there is no limit. */
  constructor(mostMs = Number.POSITIVE_INFINITY, now = () => 0) {
    this.#mostMs = mostMs
    this.#now = now
  }

  /** Whether the time is used up: what was read with these checks is not complete. */
  get isExhausted(): boolean {
    return this.#spentMs > this.#mostMs
  }

  /** As {@link re2Fault}; undefined without a look once the time is used up. */
  fault(pattern: string): string | undefined {
    if (this.isExhausted || this.#known.has(pattern)) return this.#known.get(pattern)
    const begun = this.#now()
    const reason = re2Fault(pattern)
    this.#spentMs += this.#now() - begun
    this.#known.set(pattern, reason)
    return reason
  }
}

/** What is wrong with a field that holds a regular expression, by the checks of its file if it has any. */
export const regexFault = (value: string, { patterns }: Report): string | undefined => (patterns ? patterns.fault(value) : re2Fault(value))
