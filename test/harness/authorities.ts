/** Signing certificates of the tests' own, made once each. */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AuthorityRecord, fingerprintOf } from '../../src/ca/state.ts'

/** A self-signed root, and its key. */
export interface MadeRoot {
  readonly record: AuthorityRecord
  readonly key: KeyObject
}

const made = new Map<string, MadeRoot>()

/** A self-signed root of the name that is given; the same each time. */
export function rootOf(name: string): MadeRoot {
  const known = made.get(name)
  if (known) return known
  const dir = mkdtempSync(join(tmpdir(), 'mesh-root-'))
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const options = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', `/O=${name}`]
  execFileSync('openssl', ['req', ...options, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const certificate = readFileSync(cert, 'utf8')
  const root: MadeRoot = {
    record: { id: fingerprintOf(certificate), certificate, intermediates: '', root: certificate, cross: '', origin: 'made' },
    key: createPrivateKey(readFileSync(key)),
  }
  rmSync(dir, { recursive: true })
  made.set(name, root)
  return root
}
