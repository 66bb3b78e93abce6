import ObjectGraph
import StoreInterface
import StoreModel

/// A model with every kind of rule, defined at run time.
///
/// Album 1—n Track (1 to 3 tracks), Album n—n Tag (at most 2 tags), Playlist → n Track without an inverse (at least 1), Review → Album
/// (required).
enum Shelf {
    static let model = make(title: [.length(1...8)])

    /// The same model without a rule, whose files are the same.
    static let lax = make(title: [], hasRules: false)

    static func make(
        title: [PropertyRule], hasRules: Bool = true, version: SchemaVersion = SchemaVersion()
    ) -> Model {
        func rules(_ rules: PropertyRule...) -> [PropertyRule] { hasRules ? rules : [] }
        let album = EntityDescription(
            name: "Album",
            properties: [
                .attribute(.init(name: "title", type: .string, rules: title)),
                .attribute(.init(name: "rating", type: .double, isOptional: true, rules: rules(.range(0...5)))),
                .attribute(
                    .init(name: "code", type: .string, isOptional: true, rules: rules(.required, .pattern("[A-Z]{2}[0-9]+")))),
                toMany("tracks", "Track", inverse: "album", rules(.count(1...3))),
                toMany("tags", "Tag", inverse: "albums", rules(.count(...2))),
            ])
        let track = EntityDescription(
            name: "Track",
            properties: [
                .attribute(.init(name: "title", type: .string)),
                .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
            ])
        let others = [
            EntityDescription(
                name: "Tag",
                properties: [.attribute(.init(name: "name", type: .string)), toMany("albums", "Album", inverse: "tags", [])]),
            EntityDescription(
                name: "Playlist",
                properties: [
                    .attribute(.init(name: "name", type: .string)), toMany("items", "Track", inverse: nil, rules(.count(1...))),
                ]),
            EntityDescription(
                name: "Review",
                properties: [
                    .attribute(.init(name: "text", type: .string)),
                    .relationship(
                        .init(name: "album", destination: "Album", cardinality: .toOne, rules: rules(.required))),
                ]),
        ]
        do { return try Model([album, track] + others, version: version) } catch { preconditionFailure("\(error)") }
    }

    private static func toMany(
        _ name: String, _ destination: String, inverse: String?, _ rules: [PropertyRule]
    ) -> PropertyDescription {
        .relationship(
            .init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, inference: .refused, rules: rules)
        )
    }
}

extension ManagedObjectContext {
    /// Inserts a valid album with a number of tracks.
    @discardableResult
    func makeAlbum(_ title: String, tracks: Int = 1) -> ManagedObject {
        let album = insert("Album")
        album["title"] = .string(title)
        album["code"] = "AB1"
        for number in 0..<tracks {
            let track = insert("Track")
            track["title"] = .string("\(title) \(number)")
            track.setRelatedObject("album", to: album)
        }
        return album
    }

    /// Returns the only object of an entity with a text.
    func object(_ entity: String, _ property: String, _ text: String) throws -> ManagedObject {
        let found = try fetch(EntityFetchRequest(entity, matching: .equal(property, .string(text))))
        guard found.count == 1 else { throw ContextError.notAChild(context: "\(found.count) objects \(entity) \(text)") }
        return found[0]
    }
}

/// A broken rule as tests compare it.
struct Broken: Hashable, Comparable, CustomStringConvertible, Sendable {
    var object: ObjectID
    var property: String
    var value: String

    var description: String { "\(object.entity)/\(object.key).\(property) = \(value)" }

    static func < (a: Broken, b: Broken) -> Bool { a.description < b.description }

    init(_ object: ObjectID, _ property: String, _ value: Value) {
        self.object = object
        self.property = property
        self.value = "\(value)"
    }

    static func all(of violations: [RuleViolation]) -> [Broken] {
        violations.compactMap { violation in violation.objectID.map { Broken($0, violation.property, violation.value) } }.sorted()
    }

    /// Returns the broken rules that an error of a save lists; nil for another error.
    static func all(in error: (any Error)?) -> [Broken]? {
        guard case .validation(let errors)? = error as? SaveError, errors.count == errors.ruleViolations.count else { return nil }
        return all(of: errors.ruleViolations)
    }
}

/// Returns the error of an operation; nil if it succeeds.
func failure(of body: () async throws -> Void) async -> (any Error)? {
    do { try await body() } catch { return error }
    return nil
}
