/** The flags and arguments of `pilot-discovery analyze` and `validate`. */
import { string } from '@oclif/core/args'
import type { Level } from '../analysis/finding.ts'
import { userClusterFlags } from './cluster-flags.ts'
import { checkNamespace, type FlagValues, text, toggle } from './flags.ts'
import { meansUserCluster, type UserCluster } from './user-cluster.ts'

/** What is to be analyzed, and how the result is written. */
export interface AnalyzeOrder {
  /** Files, directories, and `-` for standard input. */
  readonly paths: readonly string[]
  /** Whether objects are only checked each by itself. */
  readonly isCheck: boolean
  readonly form: 'text' | 'json' | 'sarif'
  /** The lowest level of a finding with which the command fails. */
  readonly failOn: Level
  /** The DNS suffix of the cluster. */
  readonly domain: string
  /** The namespace of objects that name none; empty: that of the context of the cluster, or `default`. */
  readonly namespace?: string
  /** The files of the mesh configuration and of the networks; empty: there is none. */
  readonly meshConfig?: string
  readonly networksConfig?: string
  /** The cluster that is read beside the files; undefined: none. */
  readonly cluster?: ClusterOrder | undefined
}

/** A cluster that is to be read. */
export interface ClusterOrder extends UserCluster {
  /** The namespace whose objects are analyzed; empty: all. */
  readonly namespace: string
}

const levels: readonly Level[] = ['error', 'warning', 'info']

/** Flags of both commands. */
export const analyzeFlags = {
  json: toggle({ description: 'prints the findings as JSON' }),
  sarif: toggle({ description: 'prints the findings as SARIF 2.1.0, which code hosts show beside the files' }),
  'fail-on': text({
    value: 'error|warning|info',
    default: 'error',
    description: 'lowest level of a finding with which the exit status is 1: error, warning or info',
  }),
  domain: text({ default: 'cluster.local', description: 'DNS domain suffix' }),
  meshConfig: text({ default: '', description: 'mesh configuration file, which counts in place of that of a ConfigMap' }),
  networksConfig: text({ default: '', description: 'mesh networks configuration file, which counts in place of that of a ConfigMap' }),
}

/** Flags of `analyze` only. */
export const clusterFlags = {
  cluster: toggle({ description: 'reads the objects of a cluster, of which files override those of the same name' }),
  ...userClusterFlags,
  orchconfig: text({ value: 'file', default: '', description: 'the same as --kubeconfig' }),
  namespace: text({
    char: 'n',
    default: '',
    description: 'namespace of objects that name none; with --cluster, only objects of this one are analyzed',
  }),
}

/** Returns the cluster of a command line; undefined: none is meant. Throws an Error when two files are named. */
export function clusterOrder({ cluster, kubeconfig, orchconfig, context, namespace }: FlagValues<typeof clusterFlags>): ClusterOrder | undefined {
  if (kubeconfig !== '' && orchconfig !== '') throw new Error('--kubeconfig and --orchconfig exclude each other: both name the file of the cluster')
  const meant = { kubeconfig: kubeconfig || orchconfig, context }
  return meansUserCluster({ cluster, ...meant }) ? { ...meant, namespace } : undefined
}

/** Arguments of both commands; more paths may follow. */
export const analyzeArgs = { path: string({ description: 'file or directory, or - for standard input; there may be several' }) }

/** Returns the order of a command line. Throws an Error that names a flag or argument that cannot be used. */
export function analyzeOrder(
  flags: FlagValues<typeof analyzeFlags>,
  args: readonly (string | undefined)[],
  isCheck: boolean,
  { namespace = '', cluster }: Partial<Pick<AnalyzeOrder, 'namespace' | 'cluster'>> = {},
): AnalyzeOrder {
  const paths = args.filter((path) => path !== undefined)
  const unknown = paths.find((path) => path.startsWith('-') && path !== '-')
  if (unknown !== undefined) throw new Error(`unknown flag: ${unknown}`)
  const { domain, meshConfig, networksConfig } = flags
  if (paths.length === 0 && !cluster && meshConfig === '' && networksConfig === '')
    throw new Error(`a file or directory is needed, or - for standard input${isCheck ? '' : ', or --cluster'}`)
  checkNamespace(namespace)
  const failOn = levels.find((level) => level === flags['fail-on'])
  if (!failOn) throw new Error(`--fail-on: ${JSON.stringify(flags['fail-on'].slice(0, 100))} is not a level; choose from ${levels.join(', ')}`)
  if (flags.json && flags.sarif) throw new Error('--json and --sarif exclude each other')
  const form = flags.sarif ? 'sarif' : flags.json ? 'json' : 'text'
  return { paths, isCheck, form, failOn, domain, meshConfig, networksConfig, namespace, cluster }
}

/** Whether a finding of a level fails the command. */
export const fails = (level: Level, failOn: Level): boolean => levels.indexOf(level) <= levels.indexOf(failOn)
