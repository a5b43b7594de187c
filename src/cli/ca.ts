/** `pilot-discovery ca`: works on the certificate authority of the server on this machine, or, when none runs, on the stored state. */
import type { AcceptedTimePage, AuthorityPage, DistrustPage, LedgerPage, RotatePage, TrustPage } from '../../protocols/messages/authority-page.ts'
import { blockersText, distrustText, ledgerText, pageText } from './ca-text.ts'
import type { CommandLine, CommandSpec } from './command-line.ts'
import { type FlagTable, readFlags } from './flag-table.ts'

/** A certificate authority: that of the server, or the stored state. */
export interface Authority {
  page(): Promise<AuthorityPage>
  ledger(start: number, length: number): Promise<LedgerPage>
  rotate(force: boolean): Promise<RotatePage>
  distrust(id: string, isDry: boolean): Promise<DistrustPage>
  trust(id: string): Promise<TrustPage>
  acceptTime(): Promise<AcceptedTimePage>
}

/** The stored state of an authority that no server uses, opened exclusively by this process. */
export interface StoredAuthority extends Authority {
  close(): Promise<void>
}

/** Paths of the files of an authority to import. Those without a file are empty. */
export interface AuthorityFiles {
  /** PKCS #12 file with the signing certificate, its key, the chain, and the root unless `root` names it. Then `cert`, `key` and `chain` are empty. */
  readonly pkcs12: string
  /** File whose first line is the password of `pkcs12`. */
  readonly passwordFile: string
  readonly cert: string
  readonly key: string
  /** Certificates between the signing certificate and the root. Empty when there are none. */
  readonly chain: string
  /** Empty when the signing certificate is the root, or the root is in `pkcs12`. */
  readonly root: string
}

/** The operations of the commands on files. They are implemented outside `src/`, which does not access files. */
export interface CaWork {
  /** Opens the stored state. Rejects when a server uses it or it is damaged. */
  open(): Promise<StoredAuthority>
  /**
   * Writes the certificates, and with `withKey` the private key of the signing certificate, to a directory. Resolves with the paths.
   * Rejects when a file exists already.
   */
  export(page: AuthorityPage, directory: string, withKey: boolean): Promise<readonly string[]>
  /**
   * Writes the roots that are sent to workloads to a file, in PKCS #12 or PKCS #7 by the end of its name. Resolves with its path. Rejects when
   * the file exists already or the name has another end.
   */
  exportTrustStore(page: AuthorityPage, path: string, passwordFile: string): Promise<readonly string[]>
  /**
   * Validates the files of an authority and copies them to `ROOT_CA_DIR`; existing files are overwritten only with `replace`. Resolves with
   * the paths. Rejects with an Error that names the file and the fault.
   */
  import(files: AuthorityFiles, replace: boolean): Promise<readonly string[]>
}

/** Imports the operations, which most commands do not need. */
type LoadWork = () => Promise<CaWork>

const outputFlag = { output: { type: 'string', char: 'o', default: '', about: "'json' for programs" } } as const satisfies FlagTable
const ledgerFlags = {
  ...outputFlag,
  identity: { type: 'string', default: '', about: 'only identities that contain this text' },
} as const satisfies FlagTable
const rotateFlags = {
  ...outputFlag,
  'dry-run': { type: 'switch', default: false, about: 'list who is not ready for the next stage, without changing anything' },
  force: { type: 'switch', default: false, about: 'continue although some holders of certificates are not ready' },
} as const satisfies FlagTable
const distrustFlags = {
  ...outputFlag,
  'dry-run': { type: 'switch', default: false, about: 'list who would be cut off, without changing anything' },
} as const satisfies FlagTable
const exportFlags = {
  to: { type: 'string', default: '.', about: 'directory that the files are written to; none of the files may exist' },
  'private-key': {
    type: 'switch',
    default: false,
    about: 'write the private key too (ca-key.pem, mode 0600): whoever has it can sign for every identity',
  },
  truststore: {
    type: 'string',
    default: '',
    about: 'write only the roots, to this file: PKCS #12 (.p12, .pfx), which Java trusts, or PKCS #7 (.p7b, .p7c)',
  },
  'password-file': { type: 'string', default: '', about: 'file whose first line is the password of a PKCS #12 file' },
} as const satisfies FlagTable
const importFlags = {
  pkcs12: { type: 'string', default: '', about: 'PKCS #12 file that holds certificate, key, chain and root, in place of the files below' },
  'password-file': exportFlags['password-file'],
  cert: { type: 'string', default: '', about: 'the signing certificate' },
  key: { type: 'string', default: '', about: 'its private key' },
  chain: { type: 'string', default: '', about: 'certificates between the signing certificate and the root, if any: PEM or PKCS #7' },
  root: {
    type: 'string',
    default: '',
    about: 'the root, or several: PEM or PKCS #7; the signing certificate itself, or the root in the PKCS #12 file, when left out',
  },
  replace: { type: 'switch', default: false, about: 'take the place of an authority that is plugged in' },
} as const satisfies FlagTable

/**
 * Returns the commands. `load` imports the operations on files, `shared` are the flags of every command, and `check` throws for invalid
 * values of these.
 */
export function caCommands(
  load: LoadWork,
  shared: CommandSpec['flags'],
  check: (flags: CommandLine['flags']) => void,
): Readonly<Record<string, CommandSpec>> {
  const command = (
    summary: string,
    examples: readonly string[],
    table: FlagTable,
    run: (line: CommandLine) => Promise<void>,
    args: CommandSpec['args'] = [],
  ): CommandSpec => ({
    summary,
    description: 'Asks the server on this machine (MESHD_ADMIN_SOCKET); when none runs, works on the stored state (MESHD_CA_STATE_DIR).',
    examples,
    args,
    flags: [{ heading: '', table }, ...shared],
    async run(line) {
      check(line.flags)
      await run(line)
    },
  })
  return {
    'ca show': command('Show roots, intermediates, expiries and the stage of a rotation', ['', '-o json'], outputFlag, async ({ flags }) => {
      const asJson = isJson(readFlags(outputFlag, flags).output)
      const page = await pageOf(load)
      print(asJson ? JSON.stringify(page, null, 2) : pageText(page))
    }),
    'ca ledger': command('Show who holds which certificate until when', ['--identity ns/shop/'], ledgerFlags, async ({ flags }) => {
      const { output, identity } = readFlags(ledgerFlags, flags)
      const asJson = isJson(output)
      const rows = (await ledgerOf(load)).filter((row) => row.identity.includes(identity))
      print(asJson ? JSON.stringify({ identities: rows }, null, 2) : ledgerText(rows))
    }),
    'ca rotate': command('Begin the rotation of the own root, or take it one stage further', ['--dry-run', '', '--force'], rotateFlags, (line) =>
      rotate(load, line),
    ),
    'ca distrust': command(
      'Distrust a root at once: it is not sent to workloads and not accepted from clients any more',
      ['4ab1c34f9d11e02a --dry-run', '4ab1c34f9d11e02a'],
      distrustFlags,
      (line) => distrust(load, line),
      [rootArgument],
    ),
    'ca trust': command(
      'Trust a root again that was distrusted',
      ['4ab1c34f9d11e02a'],
      outputFlag,
      async ({ flags, args: [id = ''] }) => {
        const asJson = isJson(readFlags(outputFlag, flags).output)
        const answer = await serverOr(load, (authority) => authority.trust(id))
        if ('refused' in answer) throw new Error(answer.refused)
        print(
          asJson ? JSON.stringify(answer, null, 2) : `Root ${answer.root.slice(0, 16)} (${answer.subject}) is trusted again where it is configured.`,
        )
      },
      [rootArgument],
    ),
    'ca accept-time': command('Take the wall clock for right, although it contradicts the recorded time', [''], outputFlag, async ({ flags }) => {
      const asJson = isJson(readFlags(outputFlag, flags).output)
      const answer = await serverOr(load, (authority) => authority.acceptTime())
      const { wall, dispute } = answer
      print(
        asJson
          ? JSON.stringify(answer, null, 2)
          : `The time ${wall} is accepted. ${dispute === undefined ? 'It was not disputed.' : `Before, ${dispute}.`}`,
      )
    }),
    'ca export': command(
      'Write the certificates of the authority to files',
      ['--to ./backup', '--to ./backup --private-key', '--truststore roots.p12 --password-file password'],
      exportFlags,
      (line) => exportFiles(load, line),
    ),
    'ca import': command(
      'Check the files of an authority and plug them in (ROOT_CA_DIR)',
      ['--cert ca-cert.pem --key ca-key.pem --root root-cert.pem', '--pkcs12 ca.p12 --password-file password'],
      importFlags,
      (line) => importFiles(load, line),
    ),
  }
}

async function exportFiles(load: LoadWork, { flags }: CommandLine): Promise<void> {
  const { to, 'private-key': withKey, truststore, 'password-file': passwordFile } = readFlags(exportFlags, flags)
  if (truststore !== '' && (withKey || flags.to !== undefined))
    throw new Error('--truststore writes one file: neither --to nor --private-key goes with it')
  if (truststore === '' && passwordFile !== '') throw new Error('--password-file has no effect without --truststore')
  const work = await load()
  const page = await pageOf(load)
  const paths = truststore === '' ? await work.export(page, to, withKey) : await work.exportTrustStore(page, truststore, passwordFile)
  for (const path of paths) print(path)
}

async function importFiles(load: LoadWork, { flags }: CommandLine): Promise<void> {
  const { replace, 'password-file': passwordFile, ...files } = readFlags(importFlags, flags)
  const isStored = files.pkcs12 !== ''
  for (const flag of ['cert', 'key'] as const) if (!isStored && files[flag] === '') throw new Error(`--${flag} is needed`)
  for (const flag of ['cert', 'key', 'chain'] as const)
    if (isStored && files[flag] !== '') throw new Error(`--pkcs12 and --${flag} contradict each other: both name it`)
  if (!isStored && passwordFile !== '') throw new Error('--password-file has no effect without --pkcs12')
  for (const path of await (await load()).import({ ...files, passwordFile }, replace)) print(path)
}

async function rotate(load: LoadWork, { flags }: CommandLine): Promise<void> {
  const { output, 'dry-run': isDry, force } = readFlags(rotateFlags, flags)
  const asJson = isJson(output)
  if (isDry) {
    const page = await pageOf(load)
    return print(asJson ? JSON.stringify(page.rotation, null, 2) : blockersText(page))
  }
  const answer = await serverOr(load, (authority) => authority.rotate(force))
  if (asJson) print(JSON.stringify(answer, null, 2))
  else if ('refused' in answer) print(answer.page ? blockersText(answer.page) : 'No authority is in force.')
  else
    print(
      `The rotation went from ${answer.from} to ${answer.went}.${answer.forcedOver.length > 0 ? ` Blockers that were overruled: ${answer.forcedOver.length}.` : ''}`,
    )
  if ('refused' in answer) throw new Error(answer.refused)
}

const rootArgument = { name: 'root', about: 'the first 8 to 64 digits of its fingerprint, as "ca show" prints them', required: true } as const

async function distrust(load: LoadWork, { flags, args: [id = ''] }: CommandLine): Promise<void> {
  const { output, 'dry-run': isDry } = readFlags(distrustFlags, flags)
  const asJson = isJson(output)
  const answer = await serverOr(load, (authority) => authority.distrust(id, isDry))
  if ('refused' in answer) throw new Error(answer.refused)
  print(asJson ? JSON.stringify(answer, null, 2) : distrustText(answer))
}

const pageOf = (load: LoadWork): Promise<AuthorityPage> => serverOr(load, (authority) => authority.page())

/** The number of identities per request. */
const pageLength = 1000

async function ledgerOf(load: LoadWork): Promise<LedgerPage['identities']> {
  const all: LedgerPage['identities'][number][] = []
  for (;;) {
    const { identities } = await serverOr(load, (authority) => authority.ledger(all.length, pageLength))
    all.push(...identities)
    if (identities.length < pageLength) return all
  }
}

/** Asks the authority of the server or, when none runs, the stored state. Rejects with the reason of the server when it refuses. */
async function serverOr<Answer>(load: LoadWork, ask: (authority: Authority) => Promise<Answer>): Promise<Answer> {
  const [{ AuthorityClient }, { NoServerError }] = await Promise.all([import('./authority-client.ts'), import('./admin-socket.ts')])
  try {
    return await ask(new AuthorityClient())
  } catch (error) {
    if (!(error instanceof NoServerError)) throw error
  }
  const stored = await (await load()).open()
  try {
    return await ask(stored)
  } finally {
    await stored.close()
  }
}

function isJson(output: string): boolean {
  if (output !== '' && output !== 'json') throw new Error("--output must be 'json'")
  return output === 'json'
}

const print = (text: string) => void process.stdout.write(`${text}\n`)
