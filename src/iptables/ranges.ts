/** Lists of address ranges, as `--mesh-service-cidr` and `--mesh-service-exclude-cidr` have them (docs/agent.md, R5). */
import ipaddr from 'ipaddr.js'
import { isIp } from '../config/addresses.ts'

/** The version of the Internet Protocol that a rule is about. */
export type Family = 4 | 6

/** Ranges by family, as network address and prefix length; `all` when the list is `*`. What is no range stands in `unreadable`. */
export interface Ranges {
  readonly all: boolean
  readonly 4: readonly string[]
  readonly 6: readonly string[]
  readonly unreadable: readonly string[]
}

/** The items of a comma-separated list, without the empty ones and without spaces around them. */
export function listItems(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Reads a list of ranges in CIDR form. Bits behind the prefix are cleared. */
export function readRanges(text: string): Ranges {
  const items = listItems(text)
  if (items.length === 1 && items[0] === '*') return { all: true, 4: [], 6: [], unreadable: [] }
  const ranges = { 4: [] as string[], 6: [] as string[], unreadable: [] as string[] }
  for (const item of items) {
    const range = readRange(item)
    if (range) ranges[range.family].push(range.text)
    else ranges.unreadable.push(item)
  }
  return { all: false, ...ranges }
}

/** Whether one of these ranges begins with a loopback address: 127.0.0.0/8 or ::1. */
export function hasLoopback(ranges: Ranges): boolean {
  return [...ranges[4], ...ranges[6]].some((range) => ipaddr.parse(range.split('/')[0] as string).range() === 'loopback')
}

function readRange(item: string): { family: Family; text: string } | undefined {
  const [address = '', bits = '', more] = item.split('/')
  if (more !== undefined || !isIp(address) || !/^\d{1,3}$/.test(bits)) return undefined
  const family = address.includes(':') ? 6 : 4
  if (Number(bits) > (family === 4 ? 32 : 128)) return undefined
  const network = family === 4 ? ipaddr.IPv4.networkAddressFromCIDR(item) : ipaddr.IPv6.networkAddressFromCIDR(item)
  return { family, text: `${network}/${Number(bits)}` }
}
