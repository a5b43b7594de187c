/**
 * The part of `pilot-discovery ca` that works on the files of an authority, and on its state while no server uses it. Runs in the process
 * of the command.
 */
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CaWork, StoredAuthority } from '../../../src/cli/ca.ts'
import { type Features, readFeatures } from '../../../src/config/features.ts'
import { readClocks, wallClockMs } from '../../runtime/clock.ts'
import { MetricRegistry } from '../../runtime/metrics.ts'
import { exportAuthority, exportTrustStore, importAuthority } from './authority-files.ts'
import { makeRoot } from './authority-source.ts'
import { distrust, trust } from './distrust.ts'
import { openFileStorage } from './file-storage.ts'
import { type InForce, ownInForce, pluggedInForce } from './in-force.ts'
import { type PluggedInFiles, readPluggedIn } from './plugged-in.ts'
import { RootRotation } from './root-rotation.ts'
import { acceptTime, authorityStatus, ledgerRows, rotate } from './shown-authority.ts'
import run from './sign-task.ts'
import type { CaStorage } from './storage.ts'

/** Returns the operations of the command for an environment. */
export function caWork(environment: Readonly<Record<string, string | undefined>>): CaWork {
  const { features } = readFeatures(environment)
  const { ROOT_CA_DIR, MESHD_CA_STATE_DIR, MESHD_ADMIN_SOCKET } = features
  return {
    open: async () => {
      if (existsSync(join(MESHD_CA_STATE_DIR, 'state.json'))) return openStored(features)
      throw new Error(
        `no server listens on the admin socket ${resolve(MESHD_ADMIN_SOCKET)}, and ${resolve(MESHD_CA_STATE_DIR)} holds no authority; one whose state is in Secrets of a cluster is worked on in a pod of its control plane: kubectl exec --namespace mesh-system deployment/meshd -- pilot-discovery ca show`,
      )
    },
    export: async (status, directory, withKey) => exportAuthority(status, directory, withKey, ROOT_CA_DIR),
    exportTrustStore,
    import: async (files, replace) => importAuthority(files, ROOT_CA_DIR, replace, wallClockMs()),
  }
}

/** Opens the stored state for this process. Results are printed by the command, so nothing is logged. */
async function openStored(features: Features): Promise<StoredAuthority> {
  const storage = await openFileStorage(features.MESHD_CA_STATE_DIR)
  const signing = {
    async makeRoot(task: Parameters<typeof run>[0]) {
      const answer = run(task)
      if ('made' in answer) return answer.made
      throw new Error('error' in answer ? answer.error : 'no root was made')
    },
  }
  const quiet = () => {}
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
      log: () => ({ debug: quiet, info: quiet, warn: quiet, error: quiet }),
      metrics: new MetricRegistry(),
    })
    const plugged = await readPluggedIn(features.ROOT_CA_DIR)
    if (!plugged.by && rotation.state.authorities.length > 0) await rotation.useOwn()
    return stored(rotation, () => inForceOf(rotation as RootRotation, storage, plugged), storage.described)
  } catch (error) {
    await (rotation ?? storage).close()
    throw error
  }
}

/** How long the command waits for a key to be generated, in milliseconds. */
const keyMs = 120_000

function stored(rotation: RootRotation, inForce: () => InForce, keptIn: string): StoredAuthority {
  const status = () => authorityStatus(inForce(), rotation, keptIn, new Set())
  return {
    status: async () => status(),
    ledger: async (start, length) => ledgerRows(rotation, start, length),
    rotate: (force) => rotate(rotation, force, status, keyMs),
    distrust: (id, isDry) => distrust(rotation, inForce(), id, isDry),
    trust: (id) => trust(rotation, id),
    acceptTime: () => acceptTime(rotation),
    close: () => rotation.close(),
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
