export function RuleFormPage() { return null; }
