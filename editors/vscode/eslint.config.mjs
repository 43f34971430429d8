import tseslint from "typescript-eslint";

/** No module of these knows an editor. */
const pure = ["src/model/**/*.ts", "src/server/**/*.ts", "src/shared/**/*.ts"];

export default tseslint.config(
  { ignores: ["dist", "node_modules"] },
  ...tseslint.configs.strictTypeChecked,
  {
    files: ["**/*.ts", "**/*.tsx"],
    languageOptions: {
      parserOptions: {
        project: ["./tsconfig.json", "./webview/tsconfig.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/switch-exhaustiveness-check": "off",
      "no-restricted-syntax": [
        "error",
        { selector: "ExportDefaultDeclaration", message: "Export by name." },
        { selector: "TSEnumDeclaration", message: "A union of strings says the same." },
      ],
      // What can be disposed of is a shape in VS Code, and no class that one has to extend.
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
      eqeqeq: ["error", "smart"],
    },
  },
  {
    files: ["**/*.mjs"],
    ...tseslint.configs.disableTypeChecked,
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      // What registers a test is awaited by the runner.
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", name: ["describe", "it"], package: "node:test" },
          ],
        },
      ],
      "@typescript-eslint/no-unused-vars": ["error", { varsIgnorePattern: "^_" }],
    },
  },
  {
    files: pure,
    rules: {
      "no-restricted-imports": ["error", { paths: [{ name: "vscode", message: "This is pure." }] }],
    },
  },
);
