import Datasets
import StoreModel

extension Dataset {
    /// The same rows without subentities, which the other engines do not have: the entity of each table has all properties of the hierarchy.
    public var withoutSubentities: Dataset {
        var result = self
        for number in tables.indices where !tables[number].subentities.isEmpty {
            result.tables[number].flatten()
            for other in tables.indices {
                for place in tables[other].references.indices where tables[other].references[place].destination == number {
                    result.tables[other].references[place].destinationMember = 0
                }
            }
        }
        for place in links.indices { (result.links[place].sourceMember, result.links[place].destinationMember) = (0, 0) }
        return result
    }
}

extension Table {
    fileprivate mutating func flatten() {
        (subentities, kinds, isAbstract) = ([], [], false)
        var names: Set<String> = []
        for place in attributes.indices {
            // Entities that do not inherit from each other may use one name for different attributes.
            while !names.insert(attributes[place].name).inserted { attributes[place].name += "_" }
            guard attributes[place].owners != [0] else { continue }
            attributes[place].owners = [0]
            // Rows of other entities have no value.
            attributes[place].isOptional = true
        }
        for place in references.indices { references[place].owner = 0 }
    }
}
