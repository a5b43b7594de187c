/** Floats with all their digits, rounded as Go rounds them: exactly, to the even digit in the middle. */

/** The digits of a number, and the position of the point in them: 1.5 is `15` and 1. */
interface Digits {
  readonly digits: string
  readonly point: number
}

/** Splits a finite float into a whole number and a power of two. */
function parts(value: number): { mantissa: bigint; power: number } {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const exponent = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & ((1n << 52n) - 1n)
  return exponent === 0 ? { mantissa: fraction, power: -1074 } : { mantissa: fraction | (1n << 52n), power: exponent - 1075 }
}

/** All digits of a float that is not negative. */
function exact(value: number): Digits {
  const { mantissa, power } = parts(value)
  if (mantissa === 0n) return { digits: '', point: 0 }
  const whole = power >= 0 ? mantissa << BigInt(power) : mantissa * 5n ** BigInt(-power)
  const digits = String(whole)
  return { digits, point: digits.length + Math.min(power, 0) }
}

/** Keeps a number of digits. */
function rounded({ digits, point }: Digits, count: number): Digits {
  if (count >= digits.length) return { digits, point }
  if (count < 0) return { digits: '', point: 0 }
  const rest = digits.slice(count)
  const isOdd = count > 0 && Number(digits[count - 1]) % 2 === 1
  const isUp = rest > '5' ? rest[0] !== '5' || /[1-9]/.test(rest.slice(1)) || isOdd : rest === '5' && isOdd
  if (!isUp) return { digits: digits.slice(0, count), point }
  const up = String(BigInt(digits.slice(0, count) || '0') + 1n).padStart(count, '0')
  return { digits: up, point: point + up.length - count }
}

/** Formats with a number of decimals (`%f`). */
export function fixedText(value: number, decimals: number): string {
  const all = exact(value)
  const { digits, point } = rounded(all, all.point + decimals)
  const whole = point <= 0 ? '0' : digits.slice(0, point).padEnd(point, '0')
  const fraction =
    decimals === 0 ? '' : ('0'.repeat(Math.min(Math.max(-point, 0), decimals)) + digits.slice(Math.max(point, 0))).padEnd(decimals, '0')
  return fraction === '' ? whole : `${whole}.${fraction.slice(0, decimals)}`
}

const powerText = (power: number): string => `e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`

/** Formats with an exponent and a number of decimals (`%e`). */
export function exponentText(value: number, decimals: number): string {
  const { digits, point } = rounded(exact(value), decimals + 1)
  const all = digits.padEnd(decimals + 1, '0')
  return `${all[0]}${decimals > 0 ? `.${all.slice(1)}` : ''}${powerText(digits === '' ? 0 : point - 1)}`
}

/** Formats with a number of digits, without zeros at the end (`%g`). */
export function significantText(value: number, count: number): string {
  const kept = rounded(exact(value), Math.max(count, 1))
  const digits = kept.digits.replace(/0+$/, '')
  const power = digits === '' ? 0 : kept.point - 1
  if (power < -4 || power >= Math.max(count, 1)) return `${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ''}${powerText(power)}`
  return fixedText(value, Math.max(digits.length - kept.point, 0))
}

/** Formats as a whole number and a power of two (`%b`). */
export function binaryText(value: number): string {
  const { mantissa, power } = parts(value)
  return `${mantissa}p${power < 0 ? '-' : '+'}${Math.abs(power)}`
}

/** Formats in hexadecimal (`%x`), with all digits or a number of them. */
export function hexText(value: number, decimals: number | undefined): string {
  const found = parts(value)
  if (found.mantissa === 0n) return `0x0${decimals ? `.${'0'.repeat(decimals)}` : ''}p+00`
  let [mantissa, power] = [found.mantissa, found.power]
  while (mantissa < 1n << 60n) {
    mantissa <<= 1n
    power--
  }
  power += 60
  if (decimals !== undefined && decimals < 15) {
    const shift = BigInt(60 - decimals * 4)
    const [cut, half] = [mantissa & ((1n << shift) - 1n), 1n << (shift - 1n)]
    mantissa >>= shift
    if (cut > half || (cut === half && mantissa % 2n === 1n)) mantissa++
    mantissa <<= shift
    if (mantissa >= 1n << 61n) {
      mantissa >>= 1n
      power++
    }
  }
  const digits = mantissa.toString(16)
  const fraction = decimals === undefined ? digits.slice(1).replace(/0+$/, '') : digits.slice(1).padEnd(decimals, '0').slice(0, decimals)
  return `0x${digits[0]}${fraction === '' ? '' : `.${fraction}`}p${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}
