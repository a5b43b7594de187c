/**
 * The part of `pilot-discovery ca` that works on the files of an authority, and on its state: in a directory while no server uses it, or in the
 * Secrets of a cluster (docs/certificates.md, K3 and K14). Runs in the process of the command.
 */
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CaWork, Purpose, StoredAuthority } from '../../../src/cli/ca.ts'
import { type Features, readFeatures } from '../../../src/config/features.ts'
import { secretNames } from '../../../src/names/secret-names.ts'
import { readClocks, wallClockMs } from '../../runtime/clock.ts'
import { MetricRegistry } from '../../runtime/metrics.ts'
import { ClusterApi, requestSettings } from '../cluster/cluster-api.ts'
import { ClusterConnection } from '../cluster/cluster-connection.ts'
import { secretCalls } from '../cluster/secret-calls.ts'
import { givenSources } from '../given/sources.ts'
import { exportAuthority, exportTrustStore, importAuthority } from './authority-files.ts'
import { makeRoot } from './authority-source.ts'
import { distrust, trust } from './distrust.ts'
import { openFileStorage } from './file-storage.ts'
import { GuestStorage } from './guest-storage.ts'
import { HeldKeys } from './held-keys.ts'
import { type InForce, ownInForce, pluggedInForce } from './in-force.ts'
import { type PluggedInFiles, pluggedInSecret, readPluggedIn } from './plugged-in.ts'
import { RootRotation } from './root-rotation.ts'
import { SecretAccess, textsOf } from './secret-access.ts'
import { openSecretStorage } from './secret-storage.ts'
import { acceptTime, authorityStatus, ledgerRows, rotate } from './shown-authority.ts'
import run, { type KeyedReference } from './sign-task.ts'
import type { CaStorage } from './storage.ts'

/** The cluster whose Secrets are worked on, as flags name it. */
interface GivenCluster {
  /** A file; empty: the cluster in whose pod the command runs. */
  readonly orchconfig: string
  /** Empty: that of the environment. */
  readonly namespace: string
}

/** Returns the operations of the command for an environment. `cluster`: where the state is; undefined: in a directory. */
export function caWork(environment: Readonly<Record<string, string | undefined>>, cluster?: GivenCluster): CaWork {
  const { features } = readFeatures(environment)
  const { ROOT_CA_DIR, MESHD_CA_STATE_DIR, MESHD_ADMIN_SOCKET } = features
  return {
    open: async (purpose) => {
      if (cluster) return openInCluster(features, cluster, purpose)
      if (existsSync(join(MESHD_CA_STATE_DIR, 'state.json'))) return openStored(features)
      throw new Error(
        `no server listens on the admin socket ${resolve(MESHD_ADMIN_SOCKET)}, and ${resolve(MESHD_CA_STATE_DIR)} holds no authority; one whose state is in Secrets of a cluster is named by --orchconfig <file> or, within a pod of the cluster, by --namespace <namespace>`,
      )
    },
    export: async (status, directory, withKey) => exportAuthority(status, directory, withKey, ROOT_CA_DIR),
    exportTrustStore,
    import: async (files, replace) => importAuthority(files, ROOT_CA_DIR, replace, wallClockMs()),
  }
}

/** Opens the state in a directory for this process alone. */
async function openStored(features: Features): Promise<StoredAuthority> {
  const storage = await openFileStorage(features.MESHD_CA_STATE_DIR)
  return opened(features, { storage, held: new HeldKeys(), plugged: () => readPluggedIn(features.ROOT_CA_DIR), end: () => undefined })
}

/** Opens the state in the Secrets of a cluster, which servers may use at the same time. */
async function openInCluster(features: Features, { orchconfig, namespace }: GivenCluster, purpose: Purpose): Promise<StoredAuthority> {
  const { cluster, noCluster } = givenSources({ registries: ['Orchestrator'], configDir: '', orchconfig, given: [] }, features)
  if (!cluster) throw new Error(`${noCluster}: use --orchconfig <file>`)
  const api = new ClusterApi(new ClusterConnection(cluster), requestSettings({ orchestratorApiQPS: 80, orchestratorApiBurst: 160 }))
  const end = () => api.close()
  try {
    const inNamespace = namespace || features.POD_NAMESPACE
    const access = new SecretAccess(secretCalls(api, inNamespace), inNamespace)
    const held = new HeldKeys()
    const storage = await openSecretStorage({ access, held, log: silent, now: wallClockMs, isGuest: true })
    return await opened(features, { storage: new GuestStorage(storage, purpose), held, plugged: () => pluggedInOf(features, access), end })
  } catch (error) {
    end()
    throw error
  }
}

/** What is plugged in as files of this machine, or without a key there as a Secret. */
async function pluggedInOf({ ROOT_CA_DIR }: Features, access: SecretAccess): Promise<PluggedInFiles> {
  const files = await readPluggedIn(ROOT_CA_DIR)
  const secret = files.by ? undefined : await access.get(secretNames.pluggedIn)
  if (!secret) return files
  const { found } = pluggedInSecret(textsOf(secret), access.described(secretNames.pluggedIn))
  return { ...found, roots: [...new Set([...found.roots, ...files.roots])] }
}

const quiet = () => {}
/** Results are printed by the command, so nothing is logged. */
const silent = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const toUser = (line: string): void => void process.stderr.write(`${line}\n`)
/** Of what is kept and cannot be read, the user is told: without the ledger nobody is known to hold certificates. */
const telling = { ...silent, warn: toUser, error: toUser }

/** What an opened state is made of. `end` is called when it is closed. */
interface OpenedParts {
  readonly storage: CaStorage
  readonly held: HeldKeys
  readonly plugged: () => Promise<PluggedInFiles>
  readonly end: () => void
}

async function opened(features: Features, { storage, held, plugged: readPlugged, end }: OpenedParts): Promise<StoredAuthority> {
  const keyed = (by: KeyedReference): KeyedReference => (by.key.kind === 'tasks' ? { ...by, pem: held.get(by.id) } : by)
  const signing: Parameters<typeof makeRoot>[0]['signing'] = {
    async makeRoot(task) {
      const answer = run(task.cross ? { ...task, cross: { ...task.cross, by: keyed(task.cross.by) } } : task)
      if (!('made' in answer)) throw new Error('error' in answer ? answer.error : 'no root was made')
      if (answer.key !== undefined) held.set('made', new Map([[answer.made.id, answer.key]]))
      return answer.made
    },
  }
  let rotation: RootRotation | undefined
  try {
    rotation = await RootRotation.open({
      storage,
      settings: { checkInterval: 0, jitter: false, gracePercent: 0, workloadLife: features.DEFAULT_WORKLOAD_CERT_TTL },
      makeRoot: (before) =>
        makeRoot({ signing, features }, storage, before ? organizationOf(before.root) : 'cluster.local', {
          before,
          now: rotation?.clock.now() ?? wallClockMs(),
        }),
      changed: quiet,
      clocks: readClocks,
      random: () => 0,
      log: (scope) => (scope === 'ca' ? telling : silent),
      metrics: new MetricRegistry(),
    })
    const plugged = await readPlugged()
    // Which proxies are connected to the servers of a cluster is not asked here.
    if (storage.follow) rotation.ledger.connectedElsewhere([], false)
    if (!plugged.by && rotation.state.authorities.length > 0) await rotation.useOwn()
    const close = () => (rotation as RootRotation).close().finally(end)
    return { ...stored(rotation, () => inForceOf(rotation as RootRotation, storage, plugged), storage.described), close }
  } catch (error) {
    await (rotation ?? storage).close()
    throw error
  }
}

/** How long the command waits for a key to be generated, in milliseconds. */
const keyMs = 120_000

function stored(rotation: RootRotation, inForce: () => InForce, keptIn: string): Omit<StoredAuthority, 'close'> {
  const status = () => authorityStatus(inForce(), rotation, keptIn, new Set())
  return {
    status: async () => status(),
    ledger: async (start, length) => ledgerRows(rotation, start, length),
    rotate: async (force) => {
      if (!force) await rotation.settled()
      return rotate(rotation, force, status, keyMs)
    },
    distrust: (id, isDry) => distrust(rotation, inForce(), id, isDry),
    trust: (id) => trust(rotation, id),
    acceptTime: () => acceptTime(rotation),
  }
}

function inForceOf(rotation: RootRotation, storage: CaStorage, plugged: PluggedInFiles): InForce {
  const former = rotation.formerRoots().map(({ certificate }) => certificate)
  const { state, clock } = rotation
  const found = plugged.by
    ? pluggedInForce(plugged, former, state.distrusted)
    : ownInForce(state, storage.keys, [...plugged.roots, ...former], clock.now())
  if (!found) throw new Error(`${storage.described}: holds no root yet`)
  return found
}

/** The organization in the subject of a root. */
const organizationOf = (root: string): string => /^O=(.*)$/m.exec(new X509Certificate(root).subject)?.[1] ?? ''
