import StrataMacros
import SwiftDiagnostics
import SwiftIfConfig
import SwiftParser
import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// The expansion of the macros in a piece of source text.
struct MacroExpansion {
    let text: String
    let diagnostics: [Diagnostic]
    /// The line of each diagnostic in the source; the first line is 1.
    let lines: [Int]

    static let specs: [String: MacroSpec] = [
        "Index": MacroSpec(type: IndexMacro.self), "Unique": MacroSpec(type: IndexMacro.self),
        "Attribute": MacroSpec(type: MarkerMacro.self),
        "Relationship": MacroSpec(type: MarkerMacro.self),
        "Transient": MacroSpec(type: MarkerMacro.self),
        "ModelActor": MacroSpec(type: ModelActorMacro.self),
        "PersistedAttribute": MacroSpec(type: PersistedAttributeMacro.self),
        "PersistedToOne": MacroSpec(type: PersistedToOneMacro.self),
        "PersistedToMany": MacroSpec(type: PersistedToManyMacro.self),
        "PersistedProperty": MacroSpec(type: PersistedPropertyMacro.self),
    ]

    /// - Parameters:
    ///   - source: The source text.
    ///   - model: The implementation of `@Model`.
    ///   - missing: The protocols to which the classes do not conform by themselves.
    ///   - languageMode: The language mode that the compiler tells the macro; nil if it tells none.
    init(
        of source: String, model: any Macro.Type = ModelMacro.self, missing: [String] = ["PersistentModel", "Sendable"],
        languageMode: Int? = nil
    ) {
        var specs = Self.specs
        specs["Model"] = MacroSpec(type: model, conformances: missing.map { "\(raw: $0)" })
        let file = Parser.parse(source: source)
        let context = BasicMacroExpansionContext(
            sourceFiles: [file: .init(moduleName: "Test", fullFilePath: "test.swift")],
            buildConfiguration: languageMode.map {
                StaticBuildConfiguration(languageVersion: VersionTuple($0), compilerVersion: VersionTuple(6, 3))
            })
        let expanded = file.expand(
            macroSpecs: specs,
            contextGenerator: { BasicMacroExpansionContext(sharingWith: context, lexicalContext: $0.allMacroLexicalContexts()) },
            indentationWidth: .spaces(4))
        text = expanded.description
        diagnostics = context.diagnostics
        lines = context.diagnostics.map { context.location(for: $0.position, anchoredAt: $0.node, fileName: "test.swift").line }
    }

    /// Returns the source after all fix-its.
    func applyingFixIts(to source: String) -> String {
        var source = source
        for case .replace(let old, let new) in diagnostics.flatMap(\.fixIts).flatMap(\.changes) {
            source = source.replacing(old.description, with: new.description, maxReplacements: 1)
        }
        return source
    }

    var messages: [String] { diagnostics.map(\.message) }

    /// Returns the words of a text, so that two layouts of the same code are equal.
    static func tokens(_ text: String) -> [String] {
        Parser.parse(source: text).tokens(viewMode: .sourceAccurate).map(\.text)
    }
}

/// Checks an expansion, or the source after its fix-its, and reports differences to Swift Testing.
func expectExpansion(
    of source: String, _ expanded: String, diagnostics: [DiagnosticSpec] = [], fixIts: [String]? = nil, fixed: String? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
) {
    assertMacroExpansion(
        source, expandedSource: expanded, diagnostics: diagnostics, macroSpecs: MacroExpansion.specs, applyFixIts: fixIts,
        fixedSource: fixed,
        failureHandler: { failure in
            Issue.record(
                Comment(rawValue: failure.message),
                sourceLocation: SourceLocation(
                    fileID: failure.location.fileID, filePath: failure.location.filePath, line: failure.location.line,
                    column: failure.location.column))
        },
        fileID: fileID, filePath: filePath, line: line, column: column)
}
