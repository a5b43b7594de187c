/**
 * Measures the cost of views: meshes in which proxies see different configuration, each beside a plain mesh of the same size, with one
 * proxy and ten services per namespace. All proxies connect, then endpoints and routes change. Only proxies that see the changed service
 * are waited for.
 */
import { type Bounds, OverBounds } from '../bounds.ts'
import { bareGoal, buildGoal, comparable, type Goal, lastGoal, memoryGoal, residentGoal } from '../goals.ts'
import { type Measure, progress, ratioOf } from '../report.ts'
import { type ShapeName, type Size, shapes } from '../shapes.ts'
import { viewHead, viewRow } from '../view-rows.ts'
import { quietPolicy } from './quiet-policy.ts'
import { measureShape, type ShapeMeasures } from './shape.ts'

/** The protocols: delta with VHDS, SotW, or delta as before Envoy 1.40. */
export const modes = ['delta', 'sotw', 'older'] as const
export type Mode = (typeof modes)[number]

/** The scenarios: the shapes, and a policy that selects no proxy. */
export const shapeNames: readonly (ShapeName | 'quiet-policy')[] = [...(Object.keys(shapes) as ShapeName[]), 'quiet-policy']

/** The settings, and the limits of a run. */
export interface ViewsOptions {
  readonly writers: number
  readonly rounds: number
  readonly shapes: readonly (ShapeName | 'quiet-policy')[]
  /** The sizes, ascending. */
  readonly namespaces: readonly number[]
  readonly modes: readonly Mode[]
  readonly limits: Bounds
}

const servicesEach = 10
/** The size that the goals of the mixed mesh apply to. */
const bigNamespaces = 1000

/**
 * Measures the chosen shapes in the chosen sizes and modes, with the plain mesh of each size where a comparison needs it. Prints one line
 * per mesh.
 */
export async function views(options: ViewsOptions): Promise<Measure[]> {
  const measures: Measure[] = []
  const chosen = options.shapes.filter((name) => name !== 'quiet-policy' && name !== 'plain') as ShapeName[]
  const smallest = new Map<string, ShapeMeasures>()
  const bounded = async <T>(variant: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof OverBounds)) throw error
      progress(`${variant}: ended: ${error.message}`)
      measures.push(ended(variant, error.message))
      return undefined
    }
  }
  const run = (name: ShapeName, mode: Mode, size: Size): Promise<ShapeMeasures | undefined> => {
    const variant = `${name}, ${size.namespaces} namespaces, ${mode}`
    const what = { ...options, variant, name, size, delta: mode !== 'sotw', hosts: mode === 'delta' }
    return bounded(variant, () => measureShape(what))
  }
  progress(viewHead)
  // No plain mesh is needed when all shapes have only goals of their own.
  const wantsPlain = options.shapes.includes('plain') || chosen.some((name) => shapes[name].heldTo !== 'itself')
  for (const namespaces of chosen.length > 0 || wantsPlain ? options.namespaces : []) {
    const size: Size = { namespaces, services: namespaces * servicesEach }
    for (const mode of options.modes) {
      const plain = wantsPlain ? await run('plain', mode, size) : undefined
      if (plain) {
        measures.push(plain.connect, plain.endpoint, plain.route)
        progress(viewRow(plain, plain))
      }
      for (const name of chosen) {
        const seen = await run(name, mode, size)
        if (!seen) continue
        progress(viewRow(seen, plain))
        const least = smallest.get(`${name} ${mode}`) ?? seen
        smallest.set(`${name} ${mode}`, least)
        measures.push(...judged(seen, { name, size, plain, least, isHeld: mode === 'delta' }))
      }
    }
  }
  if (options.shapes.includes('quiet-policy')) {
    const seen = await bounded('quiet-policy', () => quietPolicy(options.writers, options.rounds, options.limits))
    if (seen) measures.push(seen)
  }
  return measures
}

/** Returns the measure of a run that exceeded its limits. */
function ended(variant: string, reason: string): Measure {
  const goal: Goal = { what: `ended: ${reason}`, seen: Number.POSITIVE_INFINITY, most: Number.NaN, unit: 'ms' }
  return { scenario: 'ended', variant, cpu: Number.NaN, mib: 0, rss: Number.NaN, threads: {}, notes: reason, goals: [goal] }
}

const steps = ['connect', 'endpoint', 'route'] as const
type Step = (typeof steps)[number]

interface Beside {
  readonly name: ShapeName
  readonly size: Size
  /** The plain mesh of the same size. Undefined when it exceeded its limits. */
  readonly plain: ShapeMeasures | undefined
  /** The smallest size of the shape. */
  readonly least: ShapeMeasures
  /** Whether goals apply to this mode. */
  readonly isHeld: boolean
}

/** Returns the three measures with their ratios to the plain mesh and, where goals apply, with these. */
function judged(seen: ShapeMeasures, beside: Beside): Measure[] {
  const { plain, isHeld } = beside
  const goals = isHeld ? goalsOf(seen, beside) : undefined
  return steps.map((step): Measure => {
    const notes = [seen[step].notes]
    if (plain) notes.push(`${(seen[step].cpu / plain[step].cpu).toFixed(1)}x plain`)
    if (plain && step === 'route') notes.push(`${(seen.view.kib - plain.view.kib).toFixed(0)} KiB a view`)
    return { ...seen[step], notes: notes.filter(Boolean).join('; '), ...(goals ? { goals: goals[step] } : {}) }
  })
}

function goalsOf(seen: ShapeMeasures, { name, size, plain, least }: Beside): Record<Step, Goal[]> {
  const goals: Record<Step, Goal[]> = { connect: [], endpoint: [], route: [] }
  const { heldTo } = shapes[name]
  if (heldTo === 'plain' && plain) {
    goals.connect.push(...comparable(seen.connect, plain.connect, 'beside plain'))
    goals.endpoint.push(...comparable(seen.endpoint, plain.endpoint, 'beside plain', 'last'))
    goals.route.push(...comparable(seen.route, plain.route, 'beside plain', 'p99'), memoryGoal(seen.view.kib, plain.view.kib))
  }
  if (heldTo === 'smallest') {
    if (plain) goals.connect.push(buildGoal(seen.view.ms, plain.view.ms))
    if (least !== seen) {
      goals.endpoint.push(...comparable(seen.endpoint, least.endpoint, 'beside the smallest size'))
      goals.route.push(...comparable(seen.route, least.route, 'beside the smallest size'))
    }
  }
  if (name === 'mixed' && size.namespaces === bigNamespaces) {
    goals.connect.push(bareGoal(ratioOf(seen.connect)))
    goals.endpoint.push(lastGoal(seen.endpoint.last))
    goals.route.push(residentGoal(seen.route.rss))
  }
  return goals
}
