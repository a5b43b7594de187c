/** The flags of `pilot-discovery quickstart`, and what they say. */
import { type FlagValues, text, toggle, uint16 } from './flags.ts'

/** What is to be started, and where. */
export interface QuickstartOrder {
  /** The directory that the files of the mesh are left in; empty: a temporary one, which is removed. */
  readonly keep: string
  /** The first of the ports that are used; 0: those of the example. */
  readonly firstPort: number
  /** Whether Envoy may be fetched without asking. */
  readonly mayFetch: boolean
}

/** The flags. */
export const quickstartFlags = {
  keep: text({
    value: 'directory',
    default: '',
    description: 'new directory in which configuration, keys and logs stay at the end; they are removed when not given',
  }),
  'first-port': uint16({
    default: 0,
    range: [0, 60_000],
    description: 'first of the ports that are used, in place of those of the example; 0 = those of the example, and others where they are taken',
  }),
  'fetch-envoy': toggle({ description: 'fetches Envoy, if there is none, without asking' }),
}

/** Returns the order of a command line. */
export const quickstartOrder = (flags: FlagValues<typeof quickstartFlags>): QuickstartOrder => ({
  keep: flags.keep,
  firstPort: flags['first-port'],
  mayFetch: flags['fetch-envoy'],
})
