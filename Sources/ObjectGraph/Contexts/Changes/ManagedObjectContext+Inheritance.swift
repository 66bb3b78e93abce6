import StoreInterface
import StoreModel

/// Objects of hierarchies: the entity of an object, and its class (S180). Without inheritance, the cost is one test of a flag.
extension ManagedObjectContext {
    /// Returns the entity of an object, with the properties that the object has.
    @inline(__always)
    func definition(of object: ManagedObject) -> Entity {
        storedModel.hasInheritance ? member(of: object) : storedModel.entities[object.entity]
    }

    /// Reads the type of an object once. The type never changes. An object whose record is gone counts as one of the entity at the head.
    @inline(never)
    private func member(of object: ManagedObject) -> Entity {
        guard let hierarchy = storedModel.hierarchies[object.entity] else { return storedModel.entities[object.entity] }
        if object.member != ManagedObject.unknownMember { return hierarchy.members[Int(object.member)] }
        let type = read(object, hierarchy.typeColumn) ?? lastValue(object.entity, key: object.key, column: hierarchy.typeColumn)
        guard let member = hierarchy.member(ofType: type) else { return hierarchy.members[0] }
        object.member = UInt8(clamping: member)
        return hierarchy.members[member]
    }

    /// Notes the entity of an object that is being inserted.
    @inline(__always)
    func note(_ entity: Entity, of object: ManagedObject) {
        if let inheritance = entity.inheritance { object.member = UInt8(clamping: inheritance.member) }
    }

    /// Returns whether an object is one of an entity. An object whose record is gone counts as one of each entity of its hierarchy.
    func isObject(_ object: ManagedObject, of entity: Entity) -> Bool {
        guard entity.number == object.entity else { return false }
        guard entity.inheritance != nil else { return true }
        let own = definition(of: object)
        return object.member == ManagedObject.unknownMember || entity.includes(own)
    }

    /// Returns the model of an object whose class may be a subclass of `M`.
    @inline(never)
    func wrappedMember<M: PersistentModel>(_ object: ManagedObject, as type: M.Type) -> M {
        let own = definition(of: object)
        guard object.member != ManagedObject.unknownMember, let type = storedModel.type(of: own), type != M.self else {
            return M(managedObject: object)
        }
        guard let model = type.init(managedObject: object) as? M else {
            preconditionFailure("\(object.objectID) is a \(type), not a \(M.self)")
        }
        return model
    }
}
