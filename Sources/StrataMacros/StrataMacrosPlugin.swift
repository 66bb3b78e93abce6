import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct StrataMacrosPlugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = [
        ModelMacro.self, SwiftDataModelMacro.self, ModelActorMacro.self, MarkerMacro.self, IndexMacro.self,
        PersistedAttributeMacro.self, PersistedToOneMacro.self,
        PersistedToManyMacro.self, PersistedPropertyMacro.self, PersistedDerivedMacro.self,
    ]
}
