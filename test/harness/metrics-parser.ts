/** Reads metrics pages with the parsers of the Python client of Prometheus, which is strict about OpenMetrics. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withWheel } from '../../actors/quickstart/fetch-wheel.ts'
import type { MetricsFormat } from '../../actors/runtime/metrics-format.ts'

/** A metric of a page. */
export interface ParsedMetric {
  readonly name: string
  readonly type: string
  /** Names, labels and values of its lines. */
  readonly samples: readonly (readonly [name: string, labels: Readonly<Record<string, string>>, value: string])[]
}

const release = {
  name: 'prometheus-client',
  version: '0.26.0',
  hashes: ['fa93d06737aa02bacd05794768508bb97d2fbee28cb3bca04eaae92f0ca953d6'],
}
const wheel = fileURLToPath(new URL(`../../.cache/prometheus-client-${release.version}.whl`, import.meta.url))

const program = `
import json, sys
from importlib import import_module
parse = import_module(sys.argv[1]).text_string_to_metric_families
page = sys.stdin.buffer.read().decode()
json.dump([{"name": m.name, "type": m.type, "samples": [[s.name, s.labels, str(s.value)] for s in m.samples]} for m in parse(page)], sys.stdout)
`
const modules: Readonly<Record<MetricsFormat, string>> = {
  text: 'prometheus_client.parser',
  openmetrics: 'prometheus_client.openmetrics.parser',
}

/** Fetches the parsers once. Resolves with the reason when they are not there, which is an error under `CI=true`. */
export async function missingParser(): Promise<string | undefined> {
  if (existsSync(wheel)) return undefined
  const fault = await withWheel(release, { env: process.env }, (fetched) => {
    mkdirSync(dirname(wheel), { recursive: true })
    copyFileSync(fetched, `${wheel}.${process.pid}`)
    renameSync(`${wheel}.${process.pid}`, wheel)
    return undefined
  })
  if (fault !== undefined && process.env.CI === 'true') throw new Error(fault)
  return fault
}

/** Parses a page. Throws an Error with the message of the parser when the page is malformed. */
export function parseMetrics(page: string, format: MetricsFormat): ParsedMetric[] {
  const { status, stdout, stderr } = spawnSync('python3', ['-c', program, modules[format]], {
    input: page,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { ...process.env, PYTHONPATH: wheel },
  })
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1))
  return JSON.parse(stdout)
}
