import ObjectGraph
import StrataSwiftData

/// Writes objects of each model of a layer, reads them in another context, and compares what is read. Repeats this on each store: in a
/// file of each kind, which another container opens, and in memory.
///
/// Prints the counts of one store, which are the same for all, and a line per difference. Ends the program with status 1 if there are
/// differences.
/// - Parameters:
///   - layer: The name of the layer, for the output.
///   - schemas: The models, by the schema that they belong to.
///   - words: The names and raw values of cases of enums.
///   - addInitializers: Adds the initializers of the models.
public func roundTrip(
    _ layer: String, schemas: [[any StrataSwiftData.PersistentModel.Type]], words: [String],
    addInitializers: (LayerWriter) -> Void
) async throws {
    // nil is the store in memory.
    let stores: [ModelConfiguration.Store?] = ModelConfiguration.Store.allCases.map(Optional.some) + [nil]
    let names = stores.map { store in store.map { "\($0)" } ?? "memory" }
    var counts = LayerWriter.Counts()
    var failures: [String] = []
    var notes: Set<String> = []
    for (store, name) in zip(stores, names) {
        counts = LayerWriter.Counts()
        for models in schemas {
            let writer = try await roundTrip(models, in: store, words: words, addInitializers: addInitializers)
            counts.add(writer.counts)
            failures += writer.failures.map { "\(name): \($0)" }
            notes.formUnion(writer.notes)
        }
    }
    for note in notes.sorted() { print("  \(note)") }
    for failure in failures { print("  \(failure)") }
    let isComplete = failures.isEmpty && counts.models > 0
    let places = names.joined(separator: ", ")
    print("\(isComplete ? "✔" : "✘") \(layer) (\(places)): \(counts)\(isComplete ? "" : ", \(failures.count) failures")")
    if !isComplete { exit(1) }
}

/// Writes and reads the models of one schema in a new file, or in memory without a kind of file. Returns the writer with all failures.
private func roundTrip(
    _ models: [AnyModelType], in store: ModelConfiguration.Store?, words: [String], addInitializers: (LayerWriter) -> Void
) async throws -> LayerWriter {
    let folder = FileManager.default.temporaryDirectory.appending(path: "strata-layers-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let inMemory = ModelConfiguration(isStoredInMemoryOnly: true)
    let configuration = store.map { ModelConfiguration(url: folder.appending(path: "layer.store"), store: $0) } ?? inMemory
    let container = try ModelContainer(for: Schema(models), configurations: configuration)
    let writer = LayerWriter(ModelContext(container), models: models, samples: Samples(words: words))
    addInitializers(writer)
    for model in models { try writer.write(model) }
    for model in models { try writer.checkCount(of: model) }
    try writer.context.save()
    // Writes what was saved, so that the store is read and not what waits for it.
    if store == nil { try await container.flush() } else { try await container.close() }

    let reader = try store == nil ? container : ModelContainer(for: Schema(models), configurations: configuration)
    let context = ModelContext(reader)
    for check in writer.checks { writer.failures += try check(context) }
    try await reader.close()
    return writer
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
