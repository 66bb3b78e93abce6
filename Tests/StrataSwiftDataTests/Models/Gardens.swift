import StrataSwiftData

// Shapes of Apple's sample projects that are rare elsewhere.

/// Two relationships name one inverse. The first in the source has it.
@Model final class Garden {
    var name: String
    @Relationship(inverse: \Shrub.garden) var frontShrubs: [Shrub] = []
    @Relationship(inverse: \Shrub.garden) var backShrubs: [Shrub] = []

    init(name: String) { self.name = name }
}

@Model final class Shrub {
    var name: String
    var garden: Garden?

    init(_ name: String) { self.name = name }
}

#if !canImport(SwiftData)
    /// Types with the name of Apple's module.
    struct GardenPlanner {
        static let schema = SwiftData.Schema([Garden.self, Shrub.self])
        let container: SwiftData.ModelContainer

        /// Returns objects of a context that ends with the call. Their identifiers outlive it.
        func shrubs(named name: String) throws -> [Shrub] {
            let context = SwiftData.ModelContext(container)
            return try context.fetch(SwiftData.FetchDescriptor<Shrub>(predicate: #Predicate { $0.name == name }))
        }

        func identifiers(of shrubs: [Shrub]) -> Set<SwiftData.PersistentIdentifier> { Set(shrubs.map(\.persistentModelID)) }
    }
#endif
