/** Makes the bootstrap from a user's template (docs/agent.md, B18). Imported only when a template is configured. */
import type { PreparedSettings } from '../../../src/bootstrap/prepared.ts'
import type { BootstrapSettings } from '../../../src/bootstrap/settings.ts'
import { templateFunctions, templateParameters } from '../../../src/bootstrap/template-parameters.ts'
import { parseTemplate } from '../../../src/template/template.ts'
import { readIfThere } from '../../runtime/bounded-file.ts'

/** Renders the template. Rejects with an Error that names the file, and the line of a fault in the template. */
export async function fromTemplate(file: string, settings: BootstrapSettings, { options, features, platform }: PreparedSettings): Promise<string> {
  const template = await readIfThere(file)
  if (template === undefined) throw new Error(`template of the bootstrap: ${file}: there is no such file`)
  const facts = { certificateProvider: features.PILOT_CERT_PROVIDER, stsPort: options.stsPort, project: platform.gcp_project ?? '' }
  return parseTemplate(`template of the bootstrap: ${file}`, template, templateFunctions).render(templateParameters(settings, facts))
}
