/** The work of `pilot-discovery inject`: reads documents and configuration, and prints the documents with their sidecars (docs/injection.md, N14). */
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import type { InjectOrder, InjectorTexts } from '../../../protocols/messages/injection.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { defaultMeshConfig, type MeshConfig } from '../../../src/config/mesh-config.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { agentDefaults } from '../../../src/inject/agent-defaults.ts'
import { type InjectionConfiguration, readInjectionConfiguration } from '../../../src/inject/configuration.ts'
import { defaultConfig, defaultValues } from '../../../src/inject/default-template.ts'
import { injectDocuments } from '../../../src/inject/documents.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { injectorNames } from '../../../src/orchestrator/injector-object.ts'
import { settingsNames } from '../../../src/orchestrator/settings-object.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { templateLibrary } from '../webhooks/template-library.ts'
import { inputBytes, withObjects } from './standard-input.ts'

/** The most bytes of documents, and of a file with configuration. */
const most = { documents: 32 * 1024 * 1024, configuration: 2 * 1024 * 1024 }

/** What slow functions of templates may take for one pod (docs/templates.md, T11): nobody else waits. */
const slow = 60_000

/** Where the texts of the configuration are, for errors. */
interface Texts extends InjectorTexts {
  readonly place: string
  readonly mesh: string | undefined
}

/** Injects. Rejects with an Error that names the file, the document and the reason. */
export async function runInject(flags: InjectOrder): Promise<void> {
  const { features } = readFeatures(process.env)
  const revision = flags.revision || features.REVISION
  const inCluster = flags.orchconfig === '' ? {} : await clusterTexts(flags, features.POD_NAMESPACE, revision)
  const given = {
    config: flags.injectConfig === '' ? undefined : await readBoundedFile(flags.injectConfig, { most: most.configuration }),
    values: flags.values === '' ? undefined : await readBoundedFile(flags.values, { most: most.configuration }),
    mesh: flags.meshConfig === '' ? undefined : await readBoundedFile(flags.meshConfig, { most: most.configuration }),
  }
  const place = [flags.injectConfig, flags.values].filter(Boolean).join(', ') || inCluster.place || 'the configuration of this release'
  const texts: Texts = {
    place,
    config: given.config ?? inCluster.config ?? stringify(defaultConfig),
    // Values belong to the templates that read them.
    values:
      given.values ?? (given.config === undefined ? (inCluster.values ?? (inCluster.config === undefined ? stringify(defaultValues) : '')) : ''),
    mesh: given.mesh ?? inCluster.mesh,
  }
  const content = flags.filename === '-' ? await standardInput() : await readBoundedFile(flags.filename, { most: most.documents })
  const settings = {
    configuration: configurationOf(texts),
    mesh: meshOf(texts),
    revision,
    hasNativeSidecars: flags.nativeSidecars,
    setsFsGroup: features.ENABLE_LEGACY_FSGROUP_INJECTION,
    agent: agentDefaults(features),
    names: meshNames(features.MESH_DOMAIN),
    slow,
  }
  const { text, notices } = injectDocuments(content, flags.namespace, settings, flags.json)
  for (const notice of notices) process.stderr.write(`${oneLine(notice)}\n`)
  if (flags.output === '') process.stdout.write(text)
  else replaceFile(resolve(flags.output), text, 0o644)
}

function configurationOf(texts: Texts): InjectionConfiguration {
  const read = readInjectionConfiguration(texts, templateLibrary())
  if ('error' in read) throw new Error(`${texts.place}: ${read.error}`)
  for (const warning of read.warnings) process.stderr.write(`${oneLine(`${texts.place}: ${warning}`)}\n`)
  return read.configuration
}

function meshOf({ mesh }: Texts): MeshConfig {
  if (mesh === undefined) return defaultMeshConfig()
  const read = readMeshConfig(mesh)
  if ('error' in read) throw new Error(`mesh configuration: ${read.error}`)
  return read.value
}

async function standardInput(): Promise<string> {
  const bytes = await inputBytes(process.stdin, most.documents)
  if (!bytes) throw new Error(`standard input: has more than ${most.documents} bytes`)
  return withObjects(bytes.toString('utf8'))
}

/** Reads the ConfigMaps of a control plane. Each of them may be missing, but not the one with the configuration of injection. */
async function clusterTexts({ orchconfig, meshNamespace }: InjectOrder, podNamespace: string, revision: string): Promise<Partial<Texts>> {
  const [{ ClusterApi, requestSettings }, { ClusterConnection }] = await Promise.all([
    import('../cluster/cluster-api.ts'),
    import('../cluster/cluster-connection.ts'),
  ])
  const namespace = meshNamespace || podNamespace
  const api = new ClusterApi(
    new ClusterConnection({ from: 'file', path: orchconfig }),
    requestSettings({ orchestratorApiQPS: 0, orchestratorApiBurst: 0 }),
  )
  try {
    const dataOf = async (names: readonly string[]) => {
      for (const name of names) {
        const { items } = await api.call(
          { verb: 'list', resource: 'configmaps', object: `${namespace}/${name}` },
          ({ CoreV1Api }) => CoreV1Api,
          (core) => core.listNamespacedConfigMap({ namespace, fieldSelector: `metadata.name=${name}` }),
        )
        const [found] = items
        if (found) return { name, data: found.data ?? {} }
      }
      return undefined
    }
    const injector = await dataOf(injectorNames(revision))
    if (injector?.data.config === undefined)
      throw new Error(`the cluster has no ConfigMap ${namespace}/${injectorNames(revision)[0]} with the key config, and no --injectConfig is given`)
    const mesh = (await dataOf(settingsNames(revision)))?.data.mesh
    return {
      place: `ConfigMap ${namespace}/${injector.name}`,
      config: injector.data.config,
      values: injector.data.values ?? '',
      ...(mesh !== undefined && { mesh }),
    }
  } finally {
    api.close()
  }
}
