/**
 * `npm run bench` starts the real command, connects simulated sidecars from processes of their own, changes configuration, and measures how
 * long each change takes to reach every proxy and what the server spends. The same run measures the limit: a bare `node:http2` server that
 * writes as many bytes to as many proxies.
 * `--help` lists the sets and options.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { keep, type Measure, progress, ratioOf, whole } from './report.ts'
import { failures } from './rows.ts'
import { agent } from './scenarios/agent.ts'
import { analysis } from './scenarios/analysis.ts'
import { attackNames, attacks } from './scenarios/attacks.ts'
import { clusters } from './scenarios/clusters.ts'
import { type ConvergenceOptions, convergence } from './scenarios/convergence.ts'
import { fleet } from './scenarios/fleet.ts'
import { large } from './scenarios/large.ts'
import { names as nameTables } from './scenarios/names.ts'
import { orchestrator } from './scenarios/orchestrator.ts'
import { packages } from './scenarios/packages.ts'
import { relay } from './scenarios/relay.ts'
import { replicaRestart } from './scenarios/replicas.ts'
import { rollout } from './scenarios/rollout.ts'
import { churn, classes, scoped } from './scenarios/scale.ts'
import { secured } from './scenarios/secured.ts'
import { signing } from './scenarios/signing.ts'
import { size } from './scenarios/size.ts'
import { slowReaders } from './scenarios/slow-readers.ts'
import { soak } from './scenarios/soak.ts'
import { start } from './scenarios/start.ts'
import { statuses } from './scenarios/statuses.ts'
import { type Mode, modes, shapeNames, views } from './scenarios/views.ts'
import { webhooks } from './scenarios/webhooks.ts'

const defaults = {
  set: 'convergence',
  proxies: '400',
  services: '1000',
  rounds: '5',
  writers: String(availableParallelism()),
  seconds: '60',
  workloads: '8000',
  changes: '360000',
  connects: '100000',
  runs: '3',
  calibrated: '200,1000',
  checked: '400,2000',
  fleets: '10000,100000',
  each: '5000,2500',
  shape: 'all',
  namespaces: '10,100,1000',
  mode: modes.join(),
  limit: '120',
  memory: '4096',
  attacks: 'all',
  package: '',
}
const given = readOptions()
const [proxies, services, rounds, writers, seconds] = [
  numberOf('proxies'),
  numberOf('services'),
  numberOf('rounds'),
  numberOf('writers'),
  numberOf('seconds'),
] as const

/** Parses the command line. Exits the process when it has an unknown option. */
function readOptions() {
  const options = Object.fromEntries(Object.entries(defaults).map(([name, text]) => [name, { type: 'string', default: text }])) as {
    [Name in keyof typeof defaults]: { type: 'string'; default: string }
  }
  try {
    return parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } }).values
  } catch (error) {
    progress(`${(error as Error).message.split('. ')[0]}; --help lists the options`)
    process.exit(1)
  }
}

/** Returns the text of `--help`: the options with their defaults, and the sets. */
function usage(): string {
  const meanings: Record<keyof typeof defaults, string> = {
    set: 'sets, separated by commas, or all, or quick',
    proxies: 'number of simulated proxies',
    services: 'number of services',
    rounds: 'number of rounds of each change',
    writers: 'number of writers; by default one for each core',
    seconds: 'churn, orchestrator, statuses, webhooks: duration in seconds',
    workloads: 'rollout: number of workloads that are replaced, at 50 a second',
    changes: 'soak: number of changes',
    connects: 'soak: number of connections',
    runs: 'fleet: how often each run of the real service is repeated',
    calibrated: 'fleet: numbers of proxies of the runs that the simulation is calibrated with, separated by commas',
    checked: 'fleet: other numbers of proxies of the runs that it is held against',
    fleets: 'fleet: numbers of proxies to simulate, separated by commas',
    each: 'fleet: numbers of proxies of each replica of a fleet, separated by commas, at least 200',
    shape: 'views: shapes, separated by commas, or all',
    namespaces: 'views: numbers of namespaces',
    mode: 'views: modes, separated by commas',
    limit: 'views: maximum duration of a run in seconds',
    memory: 'views: maximum memory of the server in MiB',
    attacks: 'attacks: attacks, separated by commas, or all, or none for the crowd alone',
    package: 'attacks: another checkout whose package is attacked; packages: the checkout whose package is compared',
  }
  const lines = Object.entries(defaults).map(([name, text]) => [`--${name} ${text}`, meanings[name as keyof typeof defaults]] as const)
  return [
    'Usage: npm run bench -- [options]',
    '',
    'Options with their defaults:',
    ...[...lines, ['--help', 'prints this text'] as const].map(([option, meaning]) => `  ${option.padEnd(28)}${meaning}`),
    '',
    `Sets: ${Object.keys(sets).join(', ')}.`,
    `all runs the sets without ${separate.join(', ')}, which take long or need a cluster or another checkout; quick runs in continuous integration.`,
    `Shapes: ${shapeNames.join(', ')}.`,
    'The results are printed and written to bench/out.',
  ].join('\n')
}

/** Runs a scenario over SotW, then over delta. */
async function both(options: Partial<ConvergenceOptions> & { variant: string }): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const delta of [false, true])
    measures.push(...(await convergence({ delta, hosts: delta, proxies, services, rounds, writers, misbehaving: 0, ...options })))
  return measures
}

/** Runs a scenario over SotW, then over delta: fast proxies alone, and beside `slow` proxies that read 10 KB per second. */
async function bothBeside(slow: number, throttle: number): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const delta of [false, true]) measures.push(...(await slowReaders({ delta, proxies, slow, throttle, services, rounds, writers })))
  return measures
}

/** Calls `use` with a certificate that exists during the call. */
async function withCertificate<T>(use: (files: { cert: string; key: string }) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-tls-'))
  const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') }
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-x509', '-days', '1', '-subj', '/CN=bench']
  execFileSync('openssl', ['req', ...curve, '-keyout', files.key, '-out', files.cert], { stdio: 'ignore' })
  try {
    return await use(files)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Parses a comma-separated option of known names. Exits the process when a name is unknown. */
function chosen<Name extends string>(option: string, text: string, known: readonly Name[]): Name[] {
  const names = text === 'all' ? [...known] : text.split(',')
  const unknown = names.find((name) => !known.includes(name as Name))
  if (unknown !== undefined) {
    progress(`--${option}: ${JSON.stringify(unknown)} is not known; choose from ${known.join(', ')}, all`)
    process.exit(1)
  }
  return names as Name[]
}

/** Parses a comma-separated option of whole numbers above zero. Exits the process when the option contains anything else. */
function numbers(option: string, text: string): number[] {
  const values = text.split(',').map(Number)
  if (values.some((value) => !Number.isSafeInteger(value) || value < 1)) {
    progress(`--${option}: ${JSON.stringify(text)} is not a list of whole numbers above 0`)
    process.exit(1)
  }
  return values
}

/** Parses an option that is one whole number above zero. Exits the process when it is anything else. */
function numberOf(
  option: 'proxies' | 'services' | 'rounds' | 'writers' | 'seconds' | 'workloads' | 'changes' | 'connects' | 'runs' | 'limit' | 'memory',
): number {
  const [value, another] = numbers(option, given[option])
  if (value !== undefined && another === undefined) return value
  progress(`--${option}: ${JSON.stringify(given[option])} is not one number`)
  process.exit(1)
}

const core = ['endpoint change', 'route change'] as const
const sets: Record<string, () => Promise<Measure[]>> = {
  async convergence() {
    const older = { delta: true, hosts: false, proxies, services, rounds, writers, misbehaving: 0, variant: 'Envoy before 1.40' }
    return [...(await both({ variant: '' })), ...(await convergence({ ...older, changes: core }))]
  },
  tls: () => withCertificate((tls) => both({ variant: 'TLS', tls, changes: core })),
  secured: () => secured((callers) => both({ ...callers, changes: [] }), proxies),
  misbehaving: () => both({ variant: '3 in 100 misbehave', misbehaving: 100, changes: core }),
  async writers() {
    const measures: Measure[] = []
    for (const count of [1, 2, 4])
      measures.push(
        ...(await convergence({
          delta: false,
          hosts: false,
          proxies,
          services,
          rounds,
          misbehaving: 0,
          writers: count,
          variant: `${count} writers`,
          changes: core,
        })),
      )
    return measures
  },
  // A counted sidecar that loses its stream ends the run, so the scenario also shows that slow proxies are not reset.
  slow: () => both({ variant: 'all read 256 KiB/s', bytesPerSecond: 262_144, changes: core }),
  'slow-readers': () => bothBeside(Math.round(proxies * 0.375), 100),
  'throttle-1': () => bothBeside(1, 1),
  classes: () => classes(writers, 2000),
  scoped: () => scoped(writers, 10_000, 20),
  churn: () => churn(writers, 5000, 100, seconds),
  names: () => nameTables({ writers, services, rounds, proxies: Math.min(proxies, 100) }),
  relay: () => withCertificate((tls) => relay(tls)),
  signing: () => withCertificate((tls) => signing(writers, rounds, tls)),
  size: () => size(rounds, proxies),
  large: () => large(writers, services, rounds),
  rollout: () => rollout(writers, proxies, numberOf('workloads')),
  start: () => start(rounds),
  analysis: () => analysis(services, rounds),
  agent: () => agent(rounds),
  async packages() {
    if (given.package !== '') return packages(rounds, given.package)
    progress('--set packages needs --package, the checkout whose package is compared')
    process.exit(1)
  },
  attacks: () =>
    attacks({
      writers,
      names: given.attacks === 'none' ? [] : chosen('attacks', given.attacks, attackNames),
      checkout: given.package === '' ? undefined : given.package,
    }),
  orchestrator: () => orchestrator({ writers, services, rounds, proxies, seconds }),
  // At most 1,000 pods in each cluster.
  clusters: () => clusters({ writers, services: Math.min(services, 200), rounds, proxies }),
  replicas: () => replicaRestart({ writers, services, proxies }),
  fleet: () =>
    fleet({
      services,
      writers,
      rounds,
      runs: numberOf('runs'),
      calibrated: numbers('calibrated', given.calibrated),
      checked: numbers('checked', given.checked),
      fleets: numbers('fleets', given.fleets),
      each: numbers('each', given.each),
    }),
  statuses: () => statuses({ writers, proxies, seconds }),
  webhooks: () => withCertificate((tls) => webhooks({ writers, services, rounds, proxies, seconds, tls })),
  soak: () => soak(writers, numberOf('changes'), numberOf('connects')),
  views: () =>
    views({
      writers,
      rounds,
      shapes: chosen('shape', given.shape, shapeNames),
      namespaces: numbers('namespaces', given.namespaces).sort((one, other) => one - other),
      modes: chosen<Mode>('mode', given.mode, modes),
      limits: { seconds: numberOf('limit'), mib: numberOf('memory') },
    }),
}
/** Sets that `all` leaves out: they take long (an hour or more, the attacks half an hour) or need a cluster or another checkout. */
const separate = [
  ...['orchestrator', 'clusters', 'replicas', 'fleet', 'statuses', 'webhooks'],
  ...['soak', 'views', 'size', 'large', 'rollout', 'attacks', 'packages'],
]

/**
 * The maximum ratios to the bare server's CPU in the quick set, which continuous integration runs. They tolerate other load on the machine,
 * but not a copy of every response or a class per proxy.
 */
const quickLimits: Readonly<Record<string, number>> = { 'connect storm': 12, 'route change': 8 }
/**
 * Below this size in MiB the bare server's figures are small and coarse. A change for 100 proxies may then take this many CPU seconds, or this
 * many times those of the bare server: where both take three times as long as usual, the machine does.
 */
const small = { mib: 10, cpu: 0.15, ratio: 20 }

interface Regression {
  readonly row: string
  readonly text: string
}

function regressions(measures: readonly Measure[]): Regression[] {
  return measures.flatMap((measure) => {
    const row = `${measure.variant}, ${measure.scenario}`
    const ratio = ratioOf(measure)
    const most = quickLimits[measure.scenario]
    if (measure.mib < small.mib) {
      if (measure.cpu <= small.cpu || (ratio !== undefined && ratio <= small.ratio)) return []
      return [{ row, text: `${row}: ${measure.cpu.toFixed(3)} CPU seconds, at most ${small.cpu}, or ${small.ratio} times the limit's` }]
    }
    if (most !== undefined && ratio !== undefined && ratio > most)
      return [{ row, text: `${row}: ${ratio.toFixed(1)} times the limit's CPU, at most ${most}` }]
    return []
  })
}

/**
 * The regressions that a further measurement confirms, at most `attempts` of them. Other load on the machine triples the CPU seconds of one
 * measurement, and not of three in a row; code that costs too much costs it each time.
 */
async function repeated(found: readonly Regression[], measure: () => Promise<readonly Measure[]>, attempts = 2): Promise<string[]> {
  if (found.length === 0 || attempts === 0) return found.map(({ text }) => text)
  progress(`measuring again for ${found.map(({ row }) => row).join('; ')}`)
  const rows = new Set(found.map(({ row }) => row))
  const again = regressions(await measure()).filter(({ row }) => rows.has(row))
  return repeated(again, measure, attempts - 1)
}

// On a signal this process exits, which also stops servers and load generators.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

if (given.help) {
  console.log(usage())
  process.exit(0)
}
const quick = given.set === 'quick'
const names = given.set === 'all' ? Object.keys(sets).filter((name) => !separate.includes(name)) : given.set.split(',')
const unknown = quick ? undefined : names.find((name) => !sets[name])
if (unknown !== undefined) {
  progress(`--set: ${JSON.stringify(unknown)} is not a set; choose from ${Object.keys(sets).join(', ')}, all, quick`)
  process.exit(1)
}
const measures: Measure[] = []
const lines: string[] = []
if (quick) {
  const quickly = () => both({ variant: '', proxies: 100, services: 300, rounds: 10, changes: core })
  measures.push(...(await quickly()))
  lines.push(...(await repeated(regressions(measures), quickly)))
} else for (const name of names) measures.push(...((await sets[name]?.()) ?? []))
keep({ proxies, services, rounds, writers, set: given.set }, measures)
console.log(whole(measures))
const bad = [...lines.map((line) => `regression: ${line}`), ...failures(measures).map((line) => `failed: ${line}`)]
for (const line of bad) console.error(line)
process.exit(bad.length > 0 ? 1 : 0)
