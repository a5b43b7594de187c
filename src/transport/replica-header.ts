/** The header of answers to calls that names the replica of discovery which answers. */
export const replicaHeader = 'mesh-replica'

/** The longest name of a replica that is told, in characters. */
export const longestReplica = 253
