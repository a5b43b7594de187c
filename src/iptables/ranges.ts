/** Parses lists of address ranges, the values of `--mesh-service-cidr` and `--mesh-service-exclude-cidr` (docs/agent.md, R5). */
import ipaddr from 'ipaddr.js'
import { isIp } from '../config/addresses.ts'

/** The address family of a rule: IPv4 or IPv6. */
export type Family = 4 | 6

/**
 * Ranges by family, as network address and prefix length. `all` is true for the list `*`; `unreadable` contains the items that are not
 * ranges.
 */
export interface Ranges {
  readonly all: boolean
  readonly 4: readonly string[]
  readonly 6: readonly string[]
  readonly unreadable: readonly string[]
}

/** Splits a comma-separated list, trims the items and removes empty ones. */
export function listItems(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Parses a list of ranges in CIDR notation. Host bits are cleared. */
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

/** Whether the first address of one of the ranges is a loopback address: in 127.0.0.0/8, or ::1. */
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
