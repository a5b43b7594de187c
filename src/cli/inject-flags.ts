/** The flags of `pilot-discovery inject` (docs/injection.md, N14). */
import { text, toggle } from './flags.ts'

/** The flags. */
export const injectFlags = {
  filename: text({ value: 'file', char: 'f', default: '-', description: 'file with the documents, YAML or JSON; - for the standard input' }),
  namespace: text({ char: 'n', default: 'default', description: 'namespace of objects that name none' }),
  output: text({ value: 'file', char: 'o', default: '', description: 'file that the result is written to; it is printed when not given' }),
  injectConfig: text({ value: 'file', default: '', description: 'file with the key config of the configuration of injection' }),
  values: text({ value: 'file', default: '', description: 'file with its key values' }),
  meshConfig: text({ value: 'file', default: '', description: 'file with the mesh configuration' }),
  orchconfig: text({
    value: 'file',
    default: '',
    description: 'configuration file of an orchestrator, whose configuration of injection and of the mesh is used where no file is given',
  }),
  meshNamespace: text({ default: '', description: 'namespace of the control plane in the cluster; POD_NAMESPACE when not given' }),
  revision: text({ default: '', description: 'revision of the control plane; REVISION when not given' }),
  json: toggle({ description: 'prints the documents as a List in JSON, and errors as JSON' }),
  nativeSidecars: toggle({ description: 'runs the agent as a container that starts before the others and ends after them' }),
}
