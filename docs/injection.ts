/** Makes `charts/meshd/files/injection.yaml`, the configuration of injection that is installed (docs/injection.md, N1). */
import { stringify } from 'yaml'
import { defaultConfig } from '../src/inject/default-template.ts'

/** Returns the text of `charts/meshd/files/injection.yaml`. */
export const injectionFile = (): string => stringify(defaultConfig, { lineWidth: 0, aliasDuplicateObjects: false })
