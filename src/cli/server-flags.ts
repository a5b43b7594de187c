/** The flags and arguments of the commands that ask a running server. */
import { string } from '@oclif/core/args'
import { text, toggle } from './flags.ts'

/** Flags of all of them. */
export const serverFlags = {
  address: text({
    default: '',
    description:
      'server that is asked: <host>:<port> of --httpAddr or --monitoringAddr, or https://<host>:<port> of --secureGRPCAddr; the admin socket of this machine (MESHD_ADMIN_SOCKET) when not given',
  }),
  'token-file': text({ default: '', description: 'file with a token of the mesh, which is sent to --address' }),
  'ca-file': text({
    default: '',
    description: 'file with the roots that the certificate of an https --address may come from; those of the system when not given',
  }),
  json: toggle({ description: 'prints the answer as JSON, and errors too' }),
}

/** Flags of `proxy-status`. */
export const proxyStatusFlags = {
  ...serverFlags,
  namespace: text({ char: 'n', default: '', description: 'only proxies of this namespace' }),
}

/** Flags of `proxy-config`. */
export const proxyConfigFlags = {
  ...serverFlags,
  name: text({ default: '', description: 'only resources whose names contain this text' }),
}

const whichProxy = 'its name <pod>.<namespace>, or any part of its name or node id that no other proxy has'

/** The argument that names a proxy. */
export const proxyArgument = string({ description: whichProxy, required: true, ignoreStdin: true })

/** The argument that may name a proxy. */
export const maybeProxyArgument = string({ description: `only this proxy, in detail: ${whichProxy}`, ignoreStdin: true })
