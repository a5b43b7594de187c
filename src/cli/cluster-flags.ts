/** The flags that name a cluster as the orchestrator's own command line finds it, of all commands that read or ask one with the rights of the user. */
import { text } from './flags.ts'

/** The flags. Each of them means that a cluster is read or asked. */
export const userClusterFlags = {
  kubeconfig: text({
    value: 'file',
    default: '',
    description: 'configuration file of the cluster, which means --cluster; those of KUBECONFIG or ~/.kube/config when not given',
  }),
  context: text({ value: 'context', default: '', description: 'context in it, which means --cluster; the current one when not given' }),
}
