/** Pool task for tests: never ends if its input says so, and otherwise returns its input. */
export default function answer(task: { endless: boolean }): { endless: boolean } {
  while (task.endless) {}
  return task
}
