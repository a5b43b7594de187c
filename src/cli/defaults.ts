/** Defaults of flags that others than the commands read, apart from the declarations of the flags, which load the command-line library. */

/** The path of the mesh configuration file (`--meshConfig`). */
export const meshConfigPath = './etc/mesh/config/mesh'

/** The namespace of remote secrets (`--clusterRegistriesNamespace`). */
export const registriesNamespace = 'mesh-system'

/** The address of ControlZ (`--ctrlz_address`, `--ctrlz_port`). */
export const controlZ = { address: 'localhost', port: 9876 } as const
