/**
 * Regular expressions written by users, in the syntax of RE2 (as in Envoy). They are only checked here, and never matched against traffic
 * in this process.
 */
import { agentProgramSize } from './program-bounds.ts'
import { programSize } from './program-size.ts'
import type { Report } from './shape.ts'

/** Unicode classes by general category. */
const category = /^(Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)$/
/** Unicode scripts that every supported release of Envoy accepts in `\p{...}`: those of Unicode 15.0. */
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

/** Returns why text is not a regular expression that every supported release of Envoy accepts. Undefined when it is one. */
function re2Fault(pattern: string): string | undefined {
  if (pattern === '') return 'an empty pattern, which proxies refuse'
  try {
    const size = programSize(pattern)
    if (size > agentProgramSize) return `the pattern has RE2 program size ${size} or more; proxies allow ${agentProgramSize}`
  } catch (error) {
    return `not a valid RE2 pattern: ${(error as Error).message}`
  }
  const unknown = [...escapesOf(pattern)].find(isUnknown)
  return unknown === undefined ? undefined : `not a valid RE2 pattern: some releases of Envoy do not know \\${unknown}`
}

/** Yields the escapes of a pattern: the letter behind the backslash, with its argument in braces. Quoted text (`\Q...\E`) contains none. */
function* escapesOf(pattern: string): Generator<string> {
  for (const [, escaped = ''] of pattern.replace(/\\Q.*?(\\E|$)/gs, '').matchAll(/\\([pPx]\{[^}]*\}|.)/gs)) yield escaped
}

/**
 * Whether some release does not support an escape. Envoy 1.40 matches single bytes and accepts no `\x` above 0xff; scripts depend on the
 * Unicode version of the release.
 */
function isUnknown(escaped: string): boolean {
  const [, kind, given] = /^([pPx])\{(.*)\}$/s.exec(escaped) ?? []
  if (kind === undefined || given === undefined) return false
  if (kind === 'x') return Number.parseInt(given, 16) > 0xff
  const name = given.replace(/^\^/, '')
  return !category.test(name) && !scripts.has(name)
}

/**
 * Returns about how many characters a pattern has when its counted repetitions are written out: what compiling it takes grows with that. Never
 * throws: what is no valid pattern has some size too.
 */
export function writtenOut(pattern: string): number {
  /** The sizes of the open groups, and of the last atom of each. */
  const groups = [{ size: 0, atom: 0 }]
  for (let at = 0; at < pattern.length; at++) {
    const group = groups.at(-1) as (typeof groups)[number]
    const character = pattern[at]
    const [repetition, least, most] = (character === '{' && /^\{(\d{1,9})(?:,(\d{0,9}))?\}/.exec(pattern.slice(at, at + 24))) || []
    if (repetition !== undefined) {
      const times = Math.max(1, Number(least), Number(most || 0))
      group.size += group.atom * (times - 1)
      group.atom *= times
      at += repetition.length - 1
    } else if (character === '(') groups.push({ size: 0, atom: 0 })
    else if (character === ')' && groups.length > 1) {
      const inner = groups.pop()?.size ?? 0
      const outer = groups.at(-1) as (typeof groups)[number]
      outer.size += inner
      outer.atom = inner
    } else {
      // Each character of a class counts, and of an escape both do: more is no harm.
      if (character === '\\') at++
      group.size += 1
      group.atom = 1
    }
  }
  return groups.reduce((sum, { size }) => sum + size, 0)
}

/** Checks the regular expressions of one file, each distinct text once, within a limit on the time for compiling them. */
export class PatternChecks {
  readonly #maxMs: number
  readonly #now: () => number
  readonly #longest: number
  readonly #known = new Map<string, string | undefined>()
  #spentMs = 0

  /**
   * `maxMs`: the time limit. `now`: a clock in milliseconds, that of the thread's CPU. `longest`: a pattern that is longer than this when it is written out
   * ({@link writtenOut}) counts as exceeding the limit: compiling it alone might. Without arguments there is no limit.
   */
  constructor(maxMs = Number.POSITIVE_INFINITY, now = () => 0, longest = Number.POSITIVE_INFINITY) {
    this.#maxMs = maxMs
    this.#now = now
    this.#longest = longest
  }

  /** Whether the time limit is exceeded. Results read with these checks are then incomplete. */
  get isExhausted(): boolean {
    return this.#spentMs > this.#maxMs
  }

  /**
   * Returns the result of {@link re2Fault}. Once the time limit is exceeded, unknown patterns are not checked and the result is undefined.
   */
  fault(pattern: string): string | undefined {
    if (this.isExhausted || this.#known.has(pattern)) return this.#known.get(pattern)
    if (this.#longest < Number.POSITIVE_INFINITY && writtenOut(pattern) > this.#longest) {
      this.#spentMs = Number.POSITIVE_INFINITY
      return undefined
    }
    const begun = this.#now()
    const reason = re2Fault(pattern)
    this.#spentMs += this.#now() - begun
    this.#known.set(pattern, reason)
    return reason
  }
}

/** Checks in place of those that took too long: every regular expression is refused, for this reason. */
export const refusedPatterns = (reason: string): NonNullable<Report['patterns']> => ({ fault: () => reason })

/** Returns why a regular expression field is not valid. Uses the checks of its file if there are any. */
export const regexFault = (value: string, { patterns }: Report): string | undefined => (patterns ? patterns.fault(value) : re2Fault(value))
