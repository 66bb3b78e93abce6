import ArgumentParser
import ObjectGraph

/// `strata model`: the classes of a file's entities.
struct ModelCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "model", abstract: "Prints model classes in Swift that open a store.",
        discussion: """
            A file stores neither delete rules nor default values, and no names of the many sides of to-one relationships. The printed \
            classes have the rule nullify, no defaults, and the plural of the other class as such names.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let json = output.json
        try await OpenedStore.with(file) { store in
            let source = SwiftSource(store.model)
            guard json else { return try Console.current.write(try source.text()) }
            let classes = try source.entities.map { entity in
                JSON.object(["entity": .string(entity.name), "source": .string(try source.text(of: entity))])
            }
            try Console.print(
                JSON.object(["version": .string(store.model.version.description), "classes": .array(classes)]).text)
        }
    }
}
