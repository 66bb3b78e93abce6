import ObjectGraph
import StrataSwiftData

/// Writes objects of each model of a layer, opens the file again in another container, and compares what is read.
///
/// Prints the counts, and a line per difference. Ends the program with status 1 if there are differences.
/// - Parameters:
///   - layer: The name of the layer, for the output.
///   - schemas: The models, by the schema that they belong to.
///   - words: The names and raw values of cases of enums.
///   - addInitializers: Adds the initializers of the models.
public func roundTrip(
    _ layer: String, schemas: [[any StrataSwiftData.PersistentModel.Type]], words: [String],
    addInitializers: (LayerWriter) -> Void
) async throws {
    var counts = LayerWriter.Counts()
    var failures: [String] = []
    for models in schemas {
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-layers-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let configuration = ModelConfiguration(url: folder.appending(path: "layer.store"))
        let container = try ModelContainer(for: Schema(models), configurations: configuration)
        let writer = LayerWriter(ModelContext(container), models: models, samples: Samples(words: words))
        addInitializers(writer)
        for model in models { try writer.write(model) }
        for model in models { try writer.checkCount(of: model) }
        try writer.context.save()
        try await container.close()

        let reopened = try ModelContainer(for: Schema(models), configurations: configuration)
        let context = ModelContext(reopened)
        for check in writer.checks { failures += try check(context) }
        try await reopened.close()
        counts.add(writer.counts)
        failures += writer.failures
        for note in writer.notes.sorted() { print("  \(note)") }
    }
    for failure in failures { print("  \(failure)") }
    let isComplete = failures.isEmpty && counts.models > 0
    print("\(isComplete ? "✔" : "✘") \(layer): \(counts)\(isComplete ? "" : ", \(failures.count) failures")")
    if !isComplete { exit(1) }
}

extension LayerWriter {
    /// The numbers of models, properties and initializers that were compared.
    struct Counts: CustomStringConvertible {
        var models = 0
        var attributes = 0
        var relationships = 0
        var initializers = 0

        var description: String {
            "\(models) models, \(attributes) attributes, \(relationships) relationships, \(initializers) initializers"
        }

        mutating func add(_ other: Counts) {
            models += other.models
            attributes += other.attributes
            relationships += other.relationships
            initializers += other.initializers
        }
    }
}
