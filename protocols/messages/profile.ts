/** Profiles of threads, as V8 records them. Plain data: names and places of functions, never values. */
import type { HeapProfiler, Profiler } from 'node:inspector'

/** What is recorded: where CPU time is spent, or what allocated the objects that are still there. */
export type ProfileKind = 'cpu' | 'heap'

/** The profile of one thread. */
export type ThreadProfile =
  | { readonly kind: 'cpu'; readonly profile: Profiler.Profile }
  | { readonly kind: 'heap'; readonly profile: HeapProfiler.SamplingHeapProfile }

/** The interval between samples: of CPU time in microseconds, of allocated memory in bytes. */
export const sampling = { cpuMicros: 1000, heapBytes: 32_768 } as const

/** The questions that every actor with a thread of its own answers. */
export const profileAsks = { start: 'startProfile', stop: 'stopProfile' } as const
