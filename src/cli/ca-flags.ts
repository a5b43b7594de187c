/** The flags and arguments of `pilot-discovery ca`. */
import { string } from '@oclif/core/args'
import { text, toggle } from './flags.ts'

/** Flags that name the cluster whose Secrets have the state, of all commands that work on it. */
const clusterFlags = {
  orchconfig: text({
    value: 'file',
    default: '',
    description: 'work on the Secrets of the cluster that this orchestrator configuration file names, whether a server runs or not',
  }),
  namespace: text({
    char: 'n',
    default: '',
    description:
      'namespace of the control plane whose Secrets are worked on (with --orchconfig POD_NAMESPACE when unset); alone, of the cluster in whose pod this runs',
  }),
}

/** Flags of `ca show`, `ca trust` and `ca accept-time`. */
export const outputFlag = {
  output: text({ value: 'json', char: 'o', default: '', description: "'json' for programs" }),
  json: toggle({ description: 'the same as --output json' }),
  ...clusterFlags,
}

/** Flags of `ca ledger`. */
export const ledgerFlags = {
  ...outputFlag,
  identity: text({ default: '', description: 'only identities that contain this text' }),
}

/** Flags of `ca rotate`. */
export const rotateFlags = {
  ...outputFlag,
  'dry-run': toggle({ description: 'list who is not ready for the next stage, without changing anything' }),
  force: toggle({ description: 'continue although some holders of certificates are not ready' }),
}

/** Flags of `ca distrust`. */
export const distrustFlags = {
  ...outputFlag,
  'dry-run': toggle({ description: 'list who would be cut off, without changing anything' }),
}

/** Flags of `ca export`. */
export const exportFlags = {
  ...clusterFlags,
  to: text({ value: 'directory', default: '.', description: 'directory that the files are written to; none of the files may exist' }),
  'private-key': toggle({ description: 'write the private key too (ca-key.pem, mode 0600): whoever has it can sign for every identity' }),
  truststore: text({
    value: 'file',
    default: '',
    description: 'write only the roots, to this file: PKCS #12 (.p12, .pfx), which Java trusts, or PKCS #7 (.p7b, .p7c)',
  }),
  'password-file': text({ value: 'file', default: '', description: 'file whose first line is the password of a PKCS #12 file' }),
}

/** Flags of `ca import`. */
export const importFlags = {
  pkcs12: text({ value: 'file', default: '', description: 'PKCS #12 file that holds certificate, key, chain and root, in place of the files below' }),
  'password-file': exportFlags['password-file'],
  cert: text({ value: 'file', default: '', description: 'the signing certificate' }),
  key: text({ value: 'file', default: '', description: 'its private key' }),
  chain: text({ value: 'file', default: '', description: 'certificates between the signing certificate and the root, if any: PEM or PKCS #7' }),
  root: text({
    value: 'file',
    default: '',
    description: 'the root, or several: PEM or PKCS #7; the signing certificate itself, or the root in the PKCS #12 file, when left out',
  }),
  replace: toggle({ description: 'take the place of an authority that is plugged in' }),
}

/** The argument that names a root. */
export const rootArgument = string({
  description: 'the first 8 to 64 digits of its fingerprint, as "ca show" prints them',
  required: true,
  ignoreStdin: true,
})
